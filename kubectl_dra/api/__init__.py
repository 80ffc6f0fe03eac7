"""What DRA objects are: typed v1 shapes, values, lifecycle, conversion and defaults."""
