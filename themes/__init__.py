"""Colour themes as TOML, one file a theme; `tui.themes` reads them."""
