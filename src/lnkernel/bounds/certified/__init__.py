"""Certificates: the bound and its ingredients, proved digit by digit."""
