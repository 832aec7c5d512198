"""The studio: a web page and an HTTP interface for explanations, started by ``anchorline serve``.

May import: every other room except ``cli``. No other room except ``cli`` may import the studio.
Needs ``pip install 'anchorline[studio]'``, so this file imports nothing and exports nothing.
"""
