"""The colours of a report, light and dark, in one place for the page and its charts.

Text has a contrast of at least 4.5 to its ground, lines and bars at least 3 (WCAG AA). The six series
colours differ in lightness as well as in hue, so that they stay apart for people with protanopia,
deuteranopia or tritanopia; tests measure both. Charts are stored in the light colours; the page swaps each for its
dark counterpart.
"""

from __future__ import annotations

INK = ("#1b1f24", "#e8eaec")
MUTED = ("#59616b", "#a3acb5")

# name -> (light, dark); the page's style sheet knows them as --name
PAGE = {
    "paper": ("#fbfbf9", "#131619"),
    "surface": ("#ffffff", "#1a1e22"),
    "ink": INK,
    "muted": MUTED,
    "rule": ("#dfe1dd", "#323940"),
    "accent": ("#1d4f9f", "#7fb2f5"),
    "good": ("#1a7444", "#5fc78e"),
    "concern": ("#b3261e", "#ff8f85"),
    "marked": ("#ffe3a8", "#6b4a0c"),
}
SERIES = (
    ("#1d4f9f", "#4a8df0"),  # blue
    ("#d9730d", "#f3a154"),  # orange
    ("#1f9c87", "#6fe3c6"),  # sea green
    ("#8a2c63", "#bf4a86"),  # plum
    ("#9b82e0", "#c4a8ff"),  # lilac
    ("#6b5b12", "#85762b"),  # olive
)
QUIET = ("#848d97", "#6f7882")  # controls and references, which stand beside what is measured
# From nothing to much: pale to deep on white, deep to pale on black, so that much always stands out.
SEQUENTIAL = (
    ("#eff3f8", "#20272f"),
    ("#bfd2ea", "#24426b"),
    ("#94b8e2", "#2f66ab"),
    ("#4077ba", "#8fc0f7"),
    ("#173f7c", "#d3e6ff"),
)
DIVERGING = (
    ("#b2500b", "#f2a155"),
    ("#e9b07c", "#96571d"),
    ("#f4f4f1", "#252a30"),
    ("#8fb1dc", "#2e5f9e"),
    ("#1e50a0", "#86b8fa"),
)


def page_colours(place: int) -> dict[str, str]:
    """The page's colours by name: 0 is light, 1 is dark."""
    return {name: pair[place] for name, pair in PAGE.items()}


def dark_counterparts() -> dict[str, str]:
    """Light -> dark, for every colour that a chart may hold."""
    return dict([INK, MUTED, QUIET, *SERIES, *SEQUENTIAL, *DIVERGING])
