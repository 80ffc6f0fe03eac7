"""Knowledge about vendors and their drivers, shared by lint, migrate and explain.

Each file in ``vendors/`` is one vendor, as a stream of YAML documents. The first says what the vendor's
device plugin resources and node labels become (``migrate.vendors`` reads it). Each further document describes
one of its drivers: what its devices publish, which classes it installs, which parameters it accepts
(``drivers`` reads them).
"""
