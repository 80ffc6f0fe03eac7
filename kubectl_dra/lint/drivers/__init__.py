"""What the drivers that are known publish and accept: one YAML file per driver, each with its date."""
