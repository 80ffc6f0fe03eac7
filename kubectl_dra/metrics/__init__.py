"""The fleet as Prometheus sees it: counts of a cluster, their metrics, and the server that keeps them current."""
