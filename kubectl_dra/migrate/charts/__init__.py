"""Charts whose templates and values ask for devices: what to change in them, proved by rendering them again."""
