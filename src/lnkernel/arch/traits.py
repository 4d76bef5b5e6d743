"""Facts about a layer that others need to know; each layer registers its own.

Nobody asks what type a layer is. Whoever needs to know something about it asks for its `traits`; for a
layer that says nothing the answers are the safe ones: more work than needed, never a wrong number.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import singledispatch

from lnkernel.arch.flow import Kind
from lnkernel.arch.node import Node

EVERYWHERE = frozenset(Kind)
NOWHERE: frozenset[Kind] = frozenset()


@dataclass(frozen=True)
class Traits:
    r"""What is true of a layer. Every default is the safe answer for a layer of which nothing is known.

    Attributes:
        needs_difference: the kinds of state behind the layer for which its rule needs the relative
            difference `e` of the two lengths. Elsewhere the rounded lengths tell it, because neither
            the rule reads `e` nor do later layers widen a small angle that this one leaves.
        needs_range: whether squared lengths may leave the range of float64 in it, or their relative
            errors grow.
        reads_centred: whether its rule reads the covariance less the mean features. On the raw input
            these are then computed, too.
        forgets_mean: whether its output does not depend on the mean of the features before it.
        is_identity: whether it changes nothing.
        is_linear: whether it is an affine map with weights of its own, of one vector of features.
        adds_bias: whether the state behind it is never the zero vector, because a bias was added.
        is_monotone: whether it is proved that $\Theta(x,x)$ and the lengths behind it do not decrease
            in $|x|$, if they did not before it (docs/bound.md has the proof).
        steepness: at most so many powers of a squared length leave the layer for one that enters.
        has_ntk: whether its derivative has a second moment.
        marks_small_angles: whether its quick way gives no small angle at all: such pairs are computed with more care.
        follows_lengths: whether how it is computed is chosen by the lengths of the inputs.
        notes_growth: whether its leading terms note if it multiplies $\Theta/q$ by a number that grows with its input
            (`LeadingTerms.amplified`). Of others it is taken that they do not, as of homogeneous ones.
        fixes_length: whether all vectors behind it have one length, but for the zero vector.
        needs_compiler: whether every pair takes so much work that few pairs are worth a program.
        quick_way: whether that is so of pairs that ask for care alone, and the others have closed forms.
        has_pair_tables: whether few pairs are not worth one for all that, because NumPy has tables for them.
        on_positions: whether it acts on images or sequences, features at positions.
        needs_mean: whether the mean features before it matter behind it. Where every feature is mixed with new weights
            they do not.
        mixes_positions: whether what is behind it at one position depends on several before it that are correlated, so
            that every position of one input has to be compared with every position of the other.
    """

    needs_difference: frozenset[Kind] = EVERYWHERE
    needs_range: bool = True
    reads_centred: bool = True
    forgets_mean: bool = False
    is_identity: bool = False
    is_linear: bool = False
    adds_bias: bool = False
    is_monotone: bool = False
    steepness: float = math.inf
    has_ntk: bool = True
    marks_small_angles: bool = False
    follows_lengths: bool = False
    notes_growth: bool = False
    fixes_length: bool = False
    needs_compiler: bool = False
    quick_way: bool = False
    has_pair_tables: bool = False
    on_positions: bool = False
    mixes_positions: bool = False
    needs_mean: bool = True


@singledispatch
def traits(layer: Node) -> Traits:
    """The facts about one layer."""
    return Traits()
