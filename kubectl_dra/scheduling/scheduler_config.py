"""A KubeSchedulerConfiguration (kubescheduler.config.k8s.io/v1): the profiles of one scheduler process.

The scheduler does not start with a configuration that it does not understand, so that is an error here, too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec
from msgspec import Struct

from kubectl_dra.api.labels import InvalidNodeSelector, Requirement, requirement_matches
from kubectl_dra.api.meta import convert
from kubectl_dra.api.nodes import NodeAffinity
from kubectl_dra.api.pods import Pod
from kubectl_dra.api.releases import Release
from kubectl_dra.cel.library.numbers import parse_duration
from kubectl_dra.errors import FileError
from kubectl_dra.manifests.documents import read_documents
from kubectl_dra.scheduling import plugin_args as args
from kubectl_dra.scheduling.plugin_args import PluginArgs, PluginSet, Strict
from kubectl_dra.scheduling.profile import (
    DEFAULT_SCHEDULER,
    Effect,
    Extender,
    Point,
    Profile,
    WrongProfile,
    known_plugins,
    made,
)

API_VERSION: Final = "kubescheduler.config.k8s.io/v1"
KIND: Final = "KubeSchedulerConfiguration"
_CONFIG_MAP: Final = "ConfigMap"
_PATH: Final = re.compile(r" - at `\$?\.?(.*)`$")
T = TypeVar("T")


class _Plugins(Strict, frozen=True, kw_only=True):
    pre_enqueue: PluginSet = PluginSet()
    queue_sort: PluginSet = PluginSet()
    pre_filter: PluginSet = PluginSet()
    filter: PluginSet = PluginSet()
    post_filter: PluginSet = PluginSet()
    pre_score: PluginSet = PluginSet()
    score: PluginSet = PluginSet()
    reserve: PluginSet = PluginSet()
    permit: PluginSet = PluginSet()
    pre_bind: PluginSet = PluginSet()
    bind: PluginSet = PluginSet()
    post_bind: PluginSet = PluginSet()
    multi_point: PluginSet = PluginSet()
    placement_generate: PluginSet = PluginSet()
    placement_score: PluginSet = PluginSet()
    pod_group_post_filter: PluginSet = PluginSet()


class _PluginConfig(Strict, frozen=True, kw_only=True):
    name: str
    args: Mapping[str, Any] = msgspec.field(default_factory=dict)


class _Profile(Strict, frozen=True, kw_only=True):
    scheduler_name: str = ""
    percentage_of_nodes_to_score: int | None = None
    plugins: _Plugins = _Plugins()
    plugin_config: tuple[_PluginConfig, ...] = ()


class _ManagedResource(Strict, frozen=True, kw_only=True):
    name: str
    ignored_by_scheduler: bool = False


class _Extender(Strict, frozen=True, kw_only=True):
    url_prefix: str = ""
    filter_verb: str = ""
    preempt_verb: str = ""
    prioritize_verb: str = ""
    bind_verb: str = ""
    weight: int = 0
    enable_https: bool = msgspec.field(default=False, name="enableHTTPS")
    tls_config: Mapping[str, Any] = msgspec.field(default_factory=dict)
    http_timeout: Any = None
    node_cache_capable: bool = False
    managed_resources: tuple[_ManagedResource, ...] = ()
    ignorable: bool = False

    @property
    def value(self) -> Extender:
        verbs = (
            (self.filter_verb, Effect.FILTERS),
            (self.preempt_verb, Effect.EVICTS),
            (self.prioritize_verb, Effect.SCORES),
        )
        return Extender(
            self.url_prefix,
            tuple(effect for verb, effect in verbs if verb),
            frozenset(resource.name for resource in self.managed_resources),
        )


class _Configuration(Strict, frozen=True, kw_only=True):
    api_version: str = ""
    kind: str = ""
    parallelism: int = 16
    leader_election: Mapping[str, Any] = msgspec.field(default_factory=dict)
    client_connection: Mapping[str, Any] = msgspec.field(default_factory=dict)
    enable_profiling: bool = True
    enable_contention_profiling: bool = True
    percentage_of_nodes_to_score: int | None = None
    pod_initial_backoff_seconds: int = 1
    pod_max_backoff_seconds: int = 10
    profiles: tuple[_Profile, ...] = ()
    extenders: tuple[_Extender, ...] = ()
    delay_cache_until_active: bool = False


class SchedulerConfig(Struct, frozen=True):
    """The profiles of one configuration, by ``schedulerName``."""

    source: str
    profiles: Mapping[str, Profile]

    def profile_of(self, pod: Pod) -> Profile | None:
        """The profile that a pod asks for; None if it asks for another scheduler."""
        return self.profiles.get(pod.scheduler_name)


class _Wrong(ValueError):
    """An error in the configuration, at a path."""

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(f"{path}: {problem}" if path else problem)


def read_config(path: str, release: Release) -> SchedulerConfig:
    """Read a configuration file for a scheduler of this release.

    Raises:
        FileError: unreadable, not a configuration, or one with which the scheduler would not start.
    """
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise FileError(f"cannot be read: {error.strerror or error}", path) from None
    documents = read_documents(data, path)
    if len(documents) != 1:
        raise FileError(f"holds {len(documents)} documents instead of one {KIND}", path)
    try:
        return SchedulerConfig(path, _profiles(documents[0].object, release))
    except _Wrong as error:
        raise FileError(str(error), path) from None


def _profiles(raw: Mapping[str, Any], release: Release) -> dict[str, Profile]:
    kind, version = raw.get("kind"), raw.get("apiVersion")
    if kind == _CONFIG_MAP:
        raise _Wrong("", f"is a ConfigMap; give the {KIND} in it as a file of its own")
    if kind != KIND:
        raise _Wrong("", f"is {kind or 'of no kind'}, not a {KIND}")
    if version != API_VERSION:
        raise _Wrong("", f"is {KIND} {version or 'without a version'}; {API_VERSION} is known")
    config = _decoded(raw, _Configuration, "")
    written = config.profiles or (_Profile(),)
    _check_range(config.percentage_of_nodes_to_score or 0, 0, 100, "percentageOfNodesToScore")
    ignored = frozenset(
        resource.name
        for extender in config.extenders
        for resource in extender.managed_resources
        if resource.ignored_by_scheduler
    )
    profiles: dict[str, Profile] = {}
    for index, profile in enumerate(written):
        at = f"profiles[{index}]"
        name = profile.scheduler_name or (DEFAULT_SCHEDULER if len(written) == 1 else "")
        if not name:
            raise _Wrong(f"{at}.schedulerName", "is needed where there are several profiles")
        if name in profiles:
            raise _Wrong(f"{at}.schedulerName", f"{name} has a profile already")
        percentage = profile.percentage_of_nodes_to_score
        if percentage is None:
            percentage = config.percentage_of_nodes_to_score or 0
        _check_range(percentage, 0, 100, f"{at}.percentageOfNodesToScore")
        plugin_args = _args(profile.plugin_config, f"{at}.pluginConfig")
        fit = plugin_args.fit
        if ignored:
            fit = msgspec.structs.replace(fit, ignored_resources=(*fit.ignored_resources, *ignored))
        try:
            profiles[name] = made(
                name,
                release,
                {point: _set(profile.plugins, point) for point in Point},
                profile.plugins.multi_point,
                msgspec.structs.replace(plugin_args, fit=fit),
                percentage,
                tuple(extender.value for extender in config.extenders),
            )
        except WrongProfile as error:
            raise _Wrong(f"{at}.plugins", str(error)) from None
    return profiles


def _set(plugins: _Plugins, point: Point) -> PluginSet:
    names = {field.encode_name: field.name for field in msgspec.structs.fields(plugins)}
    plugin_set: PluginSet = getattr(plugins, names[point])
    return plugin_set


def _decoded(raw: Any, kind: type[T], at: str) -> T:
    try:
        return convert(raw, kind)
    except msgspec.ValidationError as error:
        text = str(error)
        where = _PATH.search(text)
        path = ".".join(part for part in (at, where[1] if where else "") if part)
        raise _Wrong(path, _PATH.sub("", text).replace("`", '"')) from None


def _args(written: Sequence[_PluginConfig], at: str) -> PluginArgs:
    kinds = {field.name: field.type for field in msgspec.structs.fields(PluginArgs)}
    args: dict[str, Any] = {}
    for index, config in enumerate(written):
        path = f"{at}[{index}]"
        name, check = _KINDS.get(config.name, ("", None))
        if check is None:
            if config.name in known_plugins() and config.args:
                raise _Wrong(f"{path}.args", f"{config.name} takes no arguments")
            continue
        if name in args:
            raise _Wrong(path, f"{config.name} has arguments already")
        value = _decoded(config.args, kinds[name], f"{path}.args")
        if value.kind not in ("", f"{config.name}Args"):
            raise _Wrong(f"{path}.args.kind", f"is {value.kind}, not {config.name}Args")
        check(value, f"{path}.args")
        args[name] = value
    return PluginArgs(**args)


def _check_range(value: int, least: int, most: int | None, at: str) -> None:
    if value < least or (most is not None and value > most):
        wanted = f"from {least} to {most}" if most is not None else f"at least {least}"
        raise _Wrong(at, f"{value} is not {wanted}")


def _check_fit(value: args.FitArgs, at: str) -> None:
    for index, group in enumerate(value.ignored_resource_groups):
        if "/" in group:
            raise _Wrong(f"{at}.ignoredResourceGroups[{index}]", f'"{group}" must not have a slash')
    strategy, at = value.scoring_strategy, f"{at}.scoringStrategy"
    kinds = (args.LEAST_ALLOCATED, args.MOST_ALLOCATED, args.REQUESTED_TO_CAPACITY)
    if strategy.type not in kinds:
        raise _Wrong(f"{at}.type", f'"{strategy.type}" is none of {", ".join(kinds)}')
    for index, resource in enumerate(strategy.resources):
        _check_range(resource.weight or 1, 1, 100, f"{at}.resources[{index}].weight")
    if strategy.type == args.REQUESTED_TO_CAPACITY:
        ratio = strategy.requested_to_capacity_ratio
        _check_shape(ratio.shape if ratio is not None else (), f"{at}.requestedToCapacityRatio.shape")


def _check_shape(shape: Sequence[args.ShapePoint], at: str) -> None:
    if not shape:
        raise _Wrong(at, "at least one point is needed")
    for index, point in enumerate(shape):
        _check_range(point.utilization, 0, 100, f"{at}[{index}].utilization")
        _check_range(point.score, 0, 10, f"{at}[{index}].score")
        if index and shape[index - 1].utilization >= point.utilization:
            raise _Wrong(f"{at}[{index}].utilization", "must be more than that of the point before")


def _check_balanced(value: args.BalancedAllocationArgs, at: str) -> None:
    names = [resource.name for resource in value.resources]
    for index, resource in enumerate(value.resources):
        if (resource.weight or 1) != 1:
            raise _Wrong(f"{at}.resources[{index}].weight", "must be 1")
        if resource.name in names[:index]:
            raise _Wrong(f"{at}.resources[{index}].name", f"{resource.name} stands there twice")


def _check_spread(value: args.SpreadArgs, at: str) -> None:
    if value.defaulting_type not in (args.SYSTEM_DEFAULTS, "List"):
        raise _Wrong(f"{at}.defaultingType", f'"{value.defaulting_type}" is none of System, List')
    if value.system and value.default_constraints:
        raise _Wrong(f"{at}.defaultingType", "must be List where there are defaultConstraints")
    seen: set[tuple[str, str]] = set()
    for index, constraint in enumerate(value.default_constraints):
        path = f"{at}.defaultConstraints[{index}]"
        _check_range(constraint.max_skew, 1, None, f"{path}.maxSkew")
        if not constraint.topology_key:
            raise _Wrong(f"{path}.topologyKey", "is needed")
        if constraint.when_unsatisfiable not in ("DoNotSchedule", "ScheduleAnyway"):
            raise _Wrong(
                f"{path}.whenUnsatisfiable",
                f'"{constraint.when_unsatisfiable}" is none of DoNotSchedule, ScheduleAnyway',
            )
        if constraint.label_selector is not None:
            raise _Wrong(f"{path}.labelSelector", "must not be there: it follows from each pod")
        pair = (constraint.topology_key, constraint.when_unsatisfiable)
        if pair in seen:
            raise _Wrong(path, f"{pair[0]} with {pair[1]} stands there twice")
        seen.add(pair)


def _check_node_affinity(value: args.NodeAffinityArgs, at: str) -> None:
    for requirement in _requirements(value.added_affinity):
        try:
            requirement_matches(requirement, {})
        except InvalidNodeSelector as error:
            raise _Wrong(f"{at}.addedAffinity", str(error)) from None


def _requirements(affinity: NodeAffinity) -> Iterator[Requirement]:
    terms = (
        *(affinity.required.terms if affinity.required else ()),
        *(preference.preference for preference in affinity.preferred),
    )
    for term in terms:
        yield from term.expressions


def _check_inter_pod(value: args.InterPodAffinityArgs, at: str) -> None:
    _check_range(value.hard_pod_affinity_weight, 0, 100, f"{at}.hardPodAffinityWeight")


def _check_preemption(value: args.DefaultPreemptionArgs, at: str) -> None:
    _check_range(value.min_candidate_nodes_percentage, 0, 100, f"{at}.minCandidateNodesPercentage")
    _check_range(value.min_candidate_nodes_absolute, 0, None, f"{at}.minCandidateNodesAbsolute")
    if not value.min_candidate_nodes_percentage and not value.min_candidate_nodes_absolute:
        raise _Wrong(at, "minCandidateNodesPercentage and minCandidateNodesAbsolute cannot both be 0")


def _check_volumes(value: args.VolumeBindingArgs, at: str) -> None:
    _check_range(value.bind_timeout_seconds, 0, None, f"{at}.bindTimeoutSeconds")
    if value.shape:
        _check_shape(value.shape, f"{at}.shape")


def _check_devices(value: args.DynamicResourcesArgs, at: str) -> None:
    for name, text, least in (("filterTimeout", value.filter_timeout, 0), ("bindingTimeout", value.binding_timeout, 1)):
        parsed = parse_duration(text)
        if parsed is None:
            raise _Wrong(f"{at}.{name}", f'"{text}" is no duration such as 10s')
        if parsed.nanoseconds < least * 1_000_000_000:
            raise _Wrong(f"{at}.{name}", f"{text} is less than {least}s")


_KINDS: Final[Mapping[str, tuple[str, Callable[[Any, str], None]]]] = {
    "NodeResourcesFit": ("fit", _check_fit),
    "NodeResourcesBalancedAllocation": ("balanced_allocation", _check_balanced),
    "PodTopologySpread": ("spread", _check_spread),
    "NodeAffinity": ("node_affinity", _check_node_affinity),
    "InterPodAffinity": ("inter_pod_affinity", _check_inter_pod),
    "DefaultPreemption": ("preemption", _check_preemption),
    "VolumeBinding": ("volume_binding", _check_volumes),
    "DynamicResources": ("dynamic_resources", _check_devices),
}
"""The plugins that take arguments, the field of ``PluginArgs``, and what is checked."""
