"""Colours of cells: neighbours in a row of lanes are told apart, and their order is seen."""

from __future__ import annotations

import colorsys

_ARC = 0.85  # of the circle of hues, so that the last is not the first again
_LIGHT = (0.86, 0.76)  # of even and odd ones: black text can be read on both
_SATURATION = 0.75


def rgb(shade: int, shades: int) -> tuple[int, int, int]:
    """Red, green and blue, 0 to 255, of a light colour, by its number among several."""
    hue = _ARC * shade / max(shades, 1)
    lightness = _LIGHT[shade % 2]
    red, green, blue = (
        round(255 * part) for part in colorsys.hls_to_rgb(hue, lightness, _SATURATION)
    )
    return red, green, blue


def hex_colour(shade: int, shades: int) -> str:
    """A colour as HTML has it."""
    return "#{:02x}{:02x}{:02x}".format(*rgb(shade, shades))
