"""neural-tangents' enumerations of words; a member is the word, so that either may be written."""

from __future__ import annotations

from enum import StrEnum


class Padding(StrEnum):
    """What stands around an image: nothing, zeros, or the image again.

    >>> from lnkernel import stax
    >>> stax.Conv(8, (3, 3), padding=stax.Padding.SAME.name).arch == stax.Conv(8, (3, 3), padding="SAME").arch
    True
    """

    CIRCULAR = "CIRCULAR"
    SAME = "SAME"
    VALID = "VALID"


class AttentionMechanism(StrEnum):
    """What is made of the scores of `GlobalSelfAttention`.

    >>> from lnkernel import stax
    >>> stax.GlobalSelfAttention(8, 4, 4, 2, attention_mechanism=stax.AttentionMechanism.RELU).arch.weights
    'relu'
    """

    SOFTMAX = "SOFTMAX"
    IDENTITY = "IDENTITY"
    ABS = "ABS"
    RELU = "RELU"


class PositionalEmbedding(StrEnum):
    """How `GlobalSelfAttention` tells where a position stands.

    >>> from lnkernel import stax
    >>> stax.GlobalSelfAttention(8, 4, 4, 2, pos_emb_type=stax.PositionalEmbedding.SUM.name).arch.embedding.std
    1.0
    """

    NONE = "NONE"
    SUM = "SUM"
    CONCAT = "CONCAT"
