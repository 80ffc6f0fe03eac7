"""A scheduler's profile: the plugins of each extension point, their order and arguments.

Source: pkg/scheduler/apis/config/v1/default_plugins.go of each release, and the framework's expansion of
multiPoint.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from enum import Enum, StrEnum, auto
from functools import lru_cache
from types import MappingProxyType
from typing import Final

from msgspec import Struct, field

from kubectl_dra.api.behaviour import DEVICE_SCORES, NODE_NAME_FIRST
from kubectl_dra.api.pods import Pod
from kubectl_dra.api.releases import Release
from kubectl_dra.scheduling.plugin_args import NO_ARGS, Enabled, PluginArgs, PluginSet
from kubectl_dra.scheduling.reasons import PluginName

DEFAULT_SCHEDULER: Final = "default-scheduler"
ALL: Final = "*"


class Point(StrEnum):
    """Extension points, named as in a configuration."""

    PRE_ENQUEUE = "preEnqueue"
    QUEUE_SORT = "queueSort"
    PRE_FILTER = "preFilter"
    FILTER = "filter"
    POST_FILTER = "postFilter"
    PRE_SCORE = "preScore"
    SCORE = "score"
    RESERVE = "reserve"
    PERMIT = "permit"
    PRE_BIND = "preBind"
    BIND = "bind"
    POST_BIND = "postBind"


class Effect(Enum):
    """What becomes unknown because something is not modelled."""

    FILTERS = auto()
    """Whether a node, or the pod, is refused."""
    EVICTS = auto()
    """What the scheduler does for a pod that fits nowhere."""
    SCORES = auto()
    """Which of the feasible nodes wins."""


class Unmodelled(Struct, frozen=True):
    """A part of a profile that is not modelled: ``subject`` names it, ``point`` is where it takes part."""

    subject: str
    effect: Effect
    point: str = ""


class Extender(Struct, frozen=True):
    """A web service that the scheduler asks besides its plugins, for pods that request any of ``resources``
    (empty: all pods).
    """

    url: str
    effects: tuple[Effect, ...]
    resources: frozenset[str] = frozenset()

    def asked_about(self, pod: Pod) -> bool:
        """Whether the scheduler asks it about the pod."""
        if not self.resources:
            return True
        return any(
            name in self.resources
            for container in (*pod.spec.containers, *pod.spec.init_containers)
            for name in (*container.resources.requests, *container.resources.limits)
        )


class Profile(Struct, frozen=True):
    """The plugins of one scheduler in running order, by extension point.

    ``weights`` are those of scores. ``percentage``: the scheduler stops when this share of the nodes is
    feasible; 0 leaves it to the scheduler.
    """

    scheduler: str
    plugins: Mapping[Point, tuple[str, ...]]
    weights: Mapping[str, int] = field(default_factory=dict)
    args: PluginArgs = NO_ARGS
    percentage: int = 0
    unmodelled: tuple[Unmodelled, ...] = ()
    extenders: tuple[Extender, ...] = ()

    def unknown(self, effect: Effect, pod: Pod) -> tuple[str, ...]:
        """The unmodelled parts that have this effect on a pod: plugins, and extenders by address."""
        plugins = (unmodelled.subject for unmodelled in self.unmodelled if unmodelled.effect is effect)
        services = (
            extender.url for extender in self.extenders if effect in extender.effects and extender.asked_about(pod)
        )
        return tuple(dict.fromkeys((*plugins, *services)))

    def runs(self, plugin: PluginName, point: Point) -> bool:
        """Whether a plugin takes part at a point."""
        return plugin in self.plugins[point]


_P = PluginName
_FILTERS: Final = frozenset((Point.PRE_FILTER, Point.FILTER))
_SCORES: Final = frozenset((Point.PRE_SCORE, Point.SCORE))
_BINDS: Final = frozenset((Point.RESERVE, Point.PRE_BIND))
_POINTS: Final[Mapping[str, frozenset[Point]]] = {
    _P.SCHEDULING_GATES: frozenset((Point.PRE_ENQUEUE,)),
    "PrioritySort": frozenset((Point.QUEUE_SORT,)),
    _P.NODE_UNSCHEDULABLE: frozenset((Point.FILTER,)),
    _P.NODE_NAME: frozenset((Point.FILTER,)),
    _P.TAINT_TOLERATION: _SCORES | {Point.FILTER},
    _P.NODE_AFFINITY: _FILTERS | _SCORES,
    _P.NODE_PORTS: _FILTERS,
    _P.NODE_RESOURCES_FIT: _FILTERS | _SCORES,
    _P.VOLUME_RESTRICTIONS: _FILTERS,
    _P.NODE_VOLUME_LIMITS: _FILTERS,
    _P.VOLUME_BINDING: _FILTERS | _SCORES | _BINDS,
    _P.VOLUME_ZONE: _FILTERS,
    _P.POD_TOPOLOGY_SPREAD: _FILTERS | _SCORES,
    _P.INTER_POD_AFFINITY: _FILTERS | _SCORES,
    _P.DYNAMIC_RESOURCES: _FILTERS | _BINDS | {Point.PRE_ENQUEUE, Point.POST_FILTER, Point.SCORE},
    _P.DEFAULT_PREEMPTION: frozenset((Point.PRE_ENQUEUE, Point.POST_FILTER)),
    _P.NODE_RESOURCES_BALANCED_ALLOCATION: _SCORES,
    _P.IMAGE_LOCALITY: frozenset((Point.SCORE,)),
    "DefaultBinder": frozenset((Point.BIND,)),
    _P.NODE_DECLARED_FEATURES: _FILTERS,
    _P.GANG_SCHEDULING: frozenset((Point.PRE_ENQUEUE, Point.RESERVE, Point.PERMIT)),
    "DeferredPodScheduling": frozenset((Point.FILTER, Point.PERMIT)),
    "TopologyPlacementGenerator": frozenset(),
    "PodGroupPodsCount": frozenset(),
}
"""The plugins of kube-scheduler in the order in which it enables them, and the extension points of each."""
_NOT_BY_DEFAULT: Final = ("DeferredPodScheduling", "TopologyPlacementGenerator", "PodGroupPodsCount")

_DEFAULT_WEIGHTS: Final[Mapping[str, int]] = {
    _P.TAINT_TOLERATION: 3,
    _P.NODE_AFFINITY: 2,
    _P.POD_TOPOLOGY_SPREAD: 2,
    _P.INTER_POD_AFFINITY: 2,
    _P.DYNAMIC_RESOURCES: 2,
}
_WITHOUT_PRE_FILTER: Final = frozenset((_P.NODE_AFFINITY,))
"""Plugins with a PreFilter that their Filter does not need."""
_BINDING: Final = (
    (_P.VOLUME_BINDING, Point.RESERVE),
    (_P.VOLUME_BINDING, Point.PRE_BIND),
    (_P.DYNAMIC_RESOURCES, Point.RESERVE),
    (_P.DYNAMIC_RESOURCES, Point.PRE_BIND),
)
"""The extension points at which a plugin binds what its filter found."""
_EFFECTS: Final[Mapping[Point, Effect]] = {
    Point.POST_FILTER: Effect.EVICTS,
    Point.PRE_SCORE: Effect.SCORES,
    Point.SCORE: Effect.SCORES,
}
_HARMLESS: Final = frozenset((Point.QUEUE_SORT, Point.POST_BIND))


class WrongProfile(ValueError):
    """The scheduler does not start with this profile; the text says why."""


def known_plugins() -> Collection[str]:
    """The names of the plugins of kube-scheduler."""
    return _POINTS.keys()


def default_plugins(release: Release) -> tuple[Enabled, ...]:
    """The plugins of a release in the order in which it enables them. Plugins of disabled features skip all pods."""
    names = [name for name in _POINTS if name not in _NOT_BY_DEFAULT]
    if release in NODE_NAME_FIRST:
        names.remove(_P.NODE_NAME)
        names.insert(names.index(_P.NODE_UNSCHEDULABLE), _P.NODE_NAME)
    return tuple(Enabled(name=name, weight=_DEFAULT_WEIGHTS.get(name, 1)) for name in names)


@lru_cache(maxsize=8)
def default_profile(release: Release) -> Profile:
    """The profile of a scheduler without a configuration."""
    return made(DEFAULT_SCHEDULER, release, {}, PluginSet())


def made(
    scheduler: str,
    release: Release,
    written: Mapping[Point, PluginSet],
    multi_point: PluginSet,
    args: PluginArgs = NO_ARGS,
    percentage: int = 0,
    extenders: tuple[Extender, ...] = (),
) -> Profile:
    """The default profile changed by a configuration.

    Raises:
        WrongProfile: the scheduler does not start with it.
    """
    everywhere = _merged(default_plugins(release), multi_point)
    plugins = {point: tuple(_expanded(point, written.get(point, PluginSet()), everywhere, release)) for point in Point}
    # Where a foreign plugin of multiPoint takes part is not known: it may sort, and need not.
    foreign = {plugin.name for plugin in everywhere} - _POINTS.keys()
    sorting = [name for name in plugins[Point.QUEUE_SORT] if name not in foreign]
    if len(sorting) > 1 or not plugins[Point.QUEUE_SORT]:
        raise WrongProfile(f"one queueSort plugin is needed, not {len(sorting)}")
    if not plugins[Point.BIND]:
        raise WrongProfile("no bind plugin is left")
    weights: dict[str, int] = {}
    for plugin in (*written.get(Point.SCORE, PluginSet()).enabled, *everywhere):
        weights.setdefault(plugin.name, plugin.weight or 1)
    return Profile(
        scheduler,
        MappingProxyType(plugins),
        MappingProxyType(weights),
        args,
        percentage,
        tuple(_unmodelled(plugins)),
        extenders,
    )


def _merged(defaults: tuple[Enabled, ...], custom: PluginSet) -> tuple[Enabled, ...]:
    """The plugins of multiPoint. A default one that is enabled again keeps its place and loses its weight."""
    again = {plugin.name: plugin for plugin in custom.enabled}
    kept: list[Enabled] = []
    if ALL not in custom.off:
        kept = [again.get(plugin.name, plugin) for plugin in defaults if plugin.name not in custom.off]
    replaced = {plugin.name for plugin in kept}
    return (*kept, *(plugin for plugin in custom.enabled if plugin.name not in replaced))


def _expanded(point: Point, own: PluginSet, everywhere: tuple[Enabled, ...], release: Release) -> Iterator[str]:
    """The plugins of one point: those enabled here in place of multiPoint's, multiPoint's, the others enabled here."""
    here = [plugin.name for plugin in own.enabled]
    for name in here:
        if here.count(name) > 1:
            raise WrongProfile(f"{name} is enabled twice at {point}")
        if name in _POINTS and point not in _POINTS[name]:
            raise WrongProfile(f"{name} takes no part in {point}")
    if ALL in own.off:
        yield from here
        return
    shared = []
    for plugin in everywhere:
        if plugin.name in own.off or (plugin.name in _POINTS and not _takes_part(plugin.name, point, release)):
            continue
        if plugin.name in shared:
            raise WrongProfile(f"{plugin.name} is enabled twice in multiPoint")
        shared.append(plugin.name)
    yield from (name for name in here if name in shared)
    yield from (name for name in shared if name not in here)
    yield from (name for name in here if name not in shared)


def _takes_part(plugin: str, point: Point, release: Release) -> bool:
    if plugin == _P.DYNAMIC_RESOURCES and point is Point.SCORE and release not in DEVICE_SCORES:
        return False
    return point in _POINTS[plugin]


def _unmodelled(plugins: Mapping[Point, tuple[str, ...]]) -> Iterator[Unmodelled]:
    """Plugins that are not kube-scheduler's own, and unsupported combinations of extension points."""
    for point, names in plugins.items():
        for name in names:
            if name not in _POINTS and point not in _HARMLESS:
                yield Unmodelled(name, _EFFECTS.get(point, Effect.FILTERS), point)
    for name in plugins[Point.FILTER]:
        needs = name in _POINTS and Point.PRE_FILTER in _POINTS[name] and name not in _WITHOUT_PRE_FILTER
        if needs and name not in plugins[Point.PRE_FILTER]:
            yield Unmodelled(f"{name} without its preFilter", Effect.FILTERS, Point.FILTER)
    for name in plugins[Point.SCORE]:
        if name in _POINTS and Point.PRE_SCORE in _POINTS[name] and name not in plugins[Point.PRE_SCORE]:
            yield Unmodelled(f"{name} without its preScore", Effect.SCORES, Point.SCORE)
    for plugin, point in _BINDING:
        if plugin in plugins[Point.FILTER] and plugin not in plugins[point]:
            yield Unmodelled(f"{plugin} without its {point}", Effect.FILTERS, point)
