"""Knowledge of device plugins and DRA drivers: resources, classes, labels; one data file per vendor."""
