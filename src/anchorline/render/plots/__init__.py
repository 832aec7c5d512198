"""The drawings behind `anchorline.render.plot`: importing one loads matplotlib."""
