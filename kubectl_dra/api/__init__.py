"""The objects of DRA: typed v1 shapes, values, lifecycle, conversion and defaults."""
