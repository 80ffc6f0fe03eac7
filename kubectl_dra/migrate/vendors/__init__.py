"""What is known of device plugins and DRA drivers: resources, classes, labels; one file of data per vendor."""
