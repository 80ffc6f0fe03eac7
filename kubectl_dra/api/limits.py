"""The limits of resource.k8s.io and of names: how many, how long, how costly; in brackets the constants in Go."""

from __future__ import annotations

from typing import Final

MAX_RESULTS: Final = 32
"""Devices in one claim's allocation (``AllocationResultsMaxSize``)."""
MAX_CONSUMERS: Final = 256
"""Consumers in a claim's ``reservedFor`` (``ResourceClaimReservedForMaxSize``)."""
MAX_REQUESTS: Final = 32
"""Requests of a claim, and names in each list that refers to them (``DeviceRequestsMaxSize``)."""
MAX_CONFIGS: Final = 32
"""Entries of ``config`` in a class or claim (``DeviceConfigMaxSize``)."""
MAX_COUNTERS: Final = 32
"""Counters of a set, and in a device's consumption of one (``ResourceSliceMaxCountersPerCounterSet``)."""
MAX_BINDING_CONDITIONS: Final = 4
"""Binding conditions of a device, and failure conditions (``BindingConditionsMaxSize``)."""
MAX_SELECTORS: Final = 32
"""Selectors of a class or request (``DeviceSelectorsMaxSize``)."""
MAX_EXPRESSION_BYTES: Final = 10 * 1024
"""Bytes of a selector's expression (``CELSelectorExpressionMaxLength``)."""
MAX_EXPRESSION_COST: Final = 1_000_000
"""Limit on a selector's worst-case cost and on the actual cost of evaluating it (``CELSelectorExpressionMaxCost``)."""
MAX_LABEL: Final = 63
"""Characters of a DNS label, of a label's value and of the name in its key."""
MAX_SUBDOMAIN: Final = 253
"""Characters of a DNS subdomain, the format of most objects' names."""
MAX_DRIVER: Final = 63
"""Characters of a driver's name (``DriverNameMaxLength``)."""
MAX_POOL: Final = 253
"""Characters of a pool's name (``PoolNameMaxLength``)."""
MAX_DOMAIN: Final = 63
"""Characters of the domain of an attribute or capacity (``DeviceMaxDomainLength``)."""
MAX_IDENTIFIER: Final = 32
"""Characters of the name of an attribute or capacity below its domain (``DeviceMaxIDLength``)."""
MAX_DEVICE_ENTRIES: Final = 32
"""Attributes and capacities of a device together (``ResourceSliceMaxAttributesAndCapacitiesPerDevice``)."""
MAX_ATTRIBUTE_VALUE: Final = 64
"""Characters of an attribute's string or version (``DeviceAttributeMaxValueLength``)."""
