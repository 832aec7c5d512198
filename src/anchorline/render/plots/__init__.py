"""The drawings behind `anchorline.render.plot`.

Importing a module of this package loads matplotlib; `canvas` holds what all drawings share.
"""
