"""3D shapes: from points to a surface and back, with figures of merit. Needs the extra ``shapes``."""
