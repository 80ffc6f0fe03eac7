"""What is known of drivers and vendors, once for lint, migrate and explain.

``driver_files`` say what a driver publishes and accepts (read by ``drivers``), ``vendor_files`` what the names of a
vendor's device plugins and node labels become (read by ``migrate.vendors``); the former are the source of the latter's
guards.
"""
