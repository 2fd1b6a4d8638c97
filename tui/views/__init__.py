"""What each of the nine views shows. Pure: a frame in, a page of lines out; the main screen does the rest."""
