"""From the claims that migrate created back to requests of device plugins."""
