"""Studio: explanations in a browser and over HTTP. ``anchorline serve`` starts it.

Needs ``pip install 'anchorline[studio]'``; nothing below imports it.
"""
