"""What is known about device plugins and DRA drivers: resources, classes, labels; one data file per vendor."""
