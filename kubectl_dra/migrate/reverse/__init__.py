"""From the claims that migrate made back to requests of device plugins."""
