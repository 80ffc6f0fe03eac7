"""Nodes that are not there yet, with their slices: from a file, like one that exists, or in words.

A copy is what cluster-autoscaler takes for the next node of a group that has one: the node, its ResourceSlices in pools
of new names, and the pods that run on each such node (docs/dra_support.md of cluster-autoscaler). But that takes over
taints of devices, which tell the state of those that are there; ``explain.autoscaler_limits`` says so.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from kubectl_dra.api.nodes import Node
from kubectl_dra.api.slices import ResourceSlice, newest_slices
from kubectl_dra.cluster.cluster import Cluster, NodeCopy
from kubectl_dra.cluster.contents import STDIN
from kubectl_dra.cluster.snapshot import DRA_KINDS, Snapshot
from kubectl_dra.data.drivers import catalogue
from kubectl_dra.errors import DraError, FlagValueError, InputError, UndeterminedError, UsageError, about
from kubectl_dra.explain.phrase import Joined, Phrase, Words, say
from kubectl_dra.explain.question.changed_node import changed_node
from kubectl_dra.explain.question.device_facts import products_there
from kubectl_dra.explain.question.new_nodes import (
    FLAG,
    NewNodes,
    described_by,
    is_path,
    parse,
    unknown_node,
    with_a_driver,
)
from kubectl_dra.explain.question.node_around import Around, furnished
from kubectl_dra.explain.question.node_in_words import (
    ARCH,
    FILE,
    USUAL_LABELS,
    Described,
    NodeInWords,
    node_in_words,
    of_first_product,
)
from kubectl_dra.explain.question.resolve import Question
from kubectl_dra.explain.question.unsaid import (
    QuestionInCluster,
    all_the_same,
    missing,
    of_other_drivers,
    saying_all,
    taken_in_its_place,
)
from kubectl_dra.scheduling.node_copy import copies_of, is_like
from kubectl_dra.scheduling.scheduler import Scheduler
from kubectl_dra.text import amount, some

_MOST_PROPOSALS: Final = 4


class Addition(Struct, frozen=True):
    """New nodes that are ready to be added: those of a file or in words, each once, or the node that they are like.

    ``words`` is what is known of a node in words, ``around`` what it has besides its devices. ``incomplete`` says
    of which pools of the node that it is like slices are missing.
    """

    new: NewNodes
    like: str
    nodes: tuple[NodeCopy, ...] = ()
    words: NodeInWords | None = None
    around: Around = Around()
    incomplete: tuple[Phrase, ...] = ()

    @property
    def countable(self) -> bool:
        """Whether it may be any number of nodes: those of a file with several are all added once."""
        return len(self.nodes) < 2

    @property
    def room_known(self) -> bool:
        """Whether it is known which CPUs and memory they have."""
        if self.words is not None:
            return self.words.machine is not None
        return all(copy.node.allocatable for copy in self.nodes)

    def has(self, name: str) -> bool:
        """Whether a new node of this name is one of them."""
        return any(is_like(name, own) for own in (self.like, *(copy.node.name for copy in self.nodes)))

    @property
    def local(self) -> bool:
        """Whether each slice is for one node alone."""
        return all(slice_.scope.node_name for copy in self.nodes for slice_ in copy.slices)

    def added(self, cluster: Cluster, scheduler: Scheduler, count: int) -> Cluster:
        """The cluster with ``count`` of them."""
        for copy in self.nodes if count else ():
            cluster = cluster.adding_node(copy)
        more = count if not self.nodes else count - 1
        if self.countable and more > 0:
            state = scheduler.sees(cluster)
            for copy in islice(copies_of(self.like, state, as_is=bool(self.nodes)), more):
                cluster = cluster.adding_node(copy)
        return cluster


def additions(new: Sequence[NewNodes], snapshot: Snapshot, scheduler: Scheduler) -> list[Addition]:
    """What the flags add to a cluster. A later one may be like a node of an earlier one.

    Raises:
        UsageError, InputError: a node, file, driver or product that is not there, or names that are taken.
    """
    additions: list[Addition] = []
    names = dict.fromkeys(snapshot.nodes)
    pools = {slice_.pool for slice_ in snapshot.slices}
    for new_nodes in new:
        try:
            addition = _addition(new_nodes, names, lambda: with_nodes(snapshot, additions, scheduler), scheduler)
            for copy in addition.nodes:
                if copy.node.name in names:
                    raise InputError(
                        f"Node {copy.node.name} is there already; rename it, or write like={copy.node.name}"
                    )
                if (same := next((slice_.pool for slice_ in copy.slices if slice_.pool in pools), None)) is not None:
                    raise InputError(f"pool {same} is there already; rename it")
            if new_nodes.count is not None and not addition.countable:
                raise UsageError(f"{new_nodes.first} holds {len(addition.nodes)} nodes; count=N goes with one")
        except FlagValueError as error:
            raise FlagValueError(f'{FLAG} "{new_nodes.text}": {error}', new_nodes.text, error.instead) from None
        except (InputError, UndeterminedError, UsageError) as error:
            raise about(f'{FLAG} "{new_nodes.text}"', error) from None
        names.update(dict.fromkeys(copy.node.name for copy in addition.nodes))
        pools.update(slice_.pool for copy in addition.nodes for slice_ in copy.slices)
        additions.append(addition)
    return additions


def _addition(new: NewNodes, names: Collection[str], cluster: Callable[[], Snapshot], scheduler: Scheduler) -> Addition:
    first = new.first if not new.resource else ""
    named = first.removeprefix("node/")
    if first and (first == STDIN or Path(first).exists()):
        return _of_file(new, scheduler)
    like = new.like or (named if named in names else "")
    if like and like in names:
        return _like(like, new, cluster, scheduler)
    described = None if like else described_by(new, names, cluster())
    if isinstance(described, NewNodes):
        return _addition(described, names, cluster, scheduler)
    if described is not None:
        found = node_in_words(described, names, cluster())
        return Addition(new, found.node.node.name, (found.node,), found)
    if first and is_path(first):
        return _of_file(new, scheduler)
    if (gap := cluster().missing("Node")) is not None:
        wanted = like or named
        raise UndeterminedError(f"{gap}, so whether there is a Node {wanted} is unknown")
    raise unknown_node(new, like, names, cluster())


def _like(like: str, new: NewNodes, cluster: Callable[[], Snapshot], scheduler: Scheduler) -> Addition:
    snapshot = cluster()
    incomplete = tuple(_incomplete(like, snapshot))
    if not new.words:
        return Addition(new, like, incomplete=incomplete)
    if other := next((name for name, _ in new.words if name in ("devices", "driver")), ""):
        raise FlagValueError(
            f"only count=N goes with {'like=' if new.like else 'a node'}, and attributes of its devices, not {other}=",
            instead=list(_of_its_products(like, new, snapshot)),
        )
    copy = next(copies_of(like, scheduler.sees(Cluster(snapshot).with_named_nodes())))
    changed = changed_node(copy, new.described(new.first or f"like={like}"), snapshot)
    return Addition(new, changed.node.name, (changed,), incomplete=incomplete)


def _incomplete(like: str, snapshot: Snapshot) -> Iterator[Phrase]:
    text = (
        "{found} of {expected:slice} of pool {pool} are published, so a new node is taken to have the devices of "
        "these, and may have more"
    )
    own = [slice_ for slice_ in snapshot.slices if slice_.scope.node_name == like]
    for pool, slices in newest_slices(own).items():
        if len(slices) < slices[0].slice_count:
            yield say(text, found=len(slices), expected=slices[0].slice_count, pool=str(pool))


def _of_its_products(like: str, new: NewNodes, snapshot: Snapshot) -> Iterator[tuple[str, str]]:
    """In words, a node with as many devices as were typed, of a product of which a node has some."""
    number = dict(new.words).get("devices", "")
    for slice_ in snapshot.slices if number else ():
        driver = catalogue().driver(slice_.driver)
        products = products_there(driver, snapshot, like) if driver is not None else ()
        for product in products[:1]:
            described = Described("", {}, {"product": product, **dict(new.words)}, new.described().end)
            yield f"A node with {number} {product}", described.written({})
            return


def with_nodes(
    snapshot: Snapshot, wanted: Sequence[Addition], scheduler: Scheduler, searched: int | None = None
) -> Snapshot:
    """The cluster with new nodes: of each as many as it says, or ``searched``, which is one by default."""
    if not wanted:
        return snapshot
    cluster = Cluster(snapshot).with_named_nodes()
    for addition in wanted:
        count = addition.new.count
        if count is None:
            count = searched if searched is not None and addition.countable else 1
        cluster = addition.added(cluster, scheduler, count)
    return cluster.snapshot


def filled_in(wanted: Sequence[Addition]) -> Iterator[Phrase]:
    """What is known of devices in words that nobody typed."""
    described = [addition.words for addition in wanted if addition.words is not None]
    for words in described:
        facts = words.facts
        filled = [f"{name} {next(iter(value.values()))}" for name, value in facts.attributes.items()]
        filled += [f"{name} {value['value']}" for name, value in facts.capacity.items()]
        if words.not_there:
            yield say(
                "{typed} is taken to be {product:some}, which the cluster has; product=NAME says otherwise: "
                "{others:some 3}",
                typed=words.described.all["product"],
                product=words.products,
                others=words.not_there,
            )
        if filled and facts.like:
            text = "a new device has what {device} publishes: {facts:some 9}"
            yield say(text, device=facts.like, facts=filled)
        elif filled:
            text = "a new device has what {driver} publishes of that product, as of {as_of}: {facts:some 9}"
            yield say(text, driver=words.driver.title, as_of=words.driver.as_of, facts=filled)
        if words.others:
            yield say("with {others:some 9} in its place the answer is the same", others=words.others)


def assumed_of(wanted: Sequence[Addition]) -> Iterator[Phrase]:
    """What is taken for granted of new nodes."""
    for addition in wanted:
        yield from addition.incomplete
        drivers = {slice_.driver for copy in addition.nodes for slice_ in copy.slices}
        if addition.words is None and drivers:
            text = "driver {drivers:some} is taken to run on {nodes:some 2}, and nobody has seen how it does"
            yield say(text, drivers=sorted(drivers), nodes=[copy.node.name for copy in addition.nodes])
        elif addition.words is not None:
            yield _around(addition, addition.words)


def _around(addition: Addition, words: NodeInWords) -> Phrase:
    around = addition.around
    arch = addition.nodes[0].node.labels.get(ARCH, "")
    system = f"Linux on {arch}" if arch else "Linux"
    parts: list[Words] = [f"enough CPU and memory, {system}"]
    if words.machine is not None:
        text = "{cpu} CPUs and {memory} memory, less what its system takes, {system}"
        parts = [say(text, **words.machine.room, system=system)]
    alike = [f"taint {taint}" for taint in around.taints] + [f"label {key}={value}" for key, value in around.labels]
    if alike:
        parts.append(say("{alike:some 4} as all nodes with such devices here", alike=alike))
    if (resource := words.described.resource) in addition.nodes[0].node.allocatable:
        parts.append(say("a device plugin that offers them as {resource} to pods without claims", resource=resource))
    if not around.taints:
        parts.append("no taints")
    unknown = {(asked.key, asked.value) for asked in around.unknown}
    labels = addition.nodes[0].node.labels.items() - {*around.labels, *unknown}
    if own := [f"{key}={value}" for key, value in sorted(labels) if key not in USUAL_LABELS]:
        parts.append(say("label {own:some}" if len(own) == 1 else "labels {own:some 6}", own=own))
    return say(
        "of a node in words only the devices are known: {node} is taken to run driver {driver} and to have {parts}; "
        "its other labels are unknown, and a file of the Node and its ResourceSlices says more",
        node=addition.like,
        driver=words.driver.name,
        parts=Joined(tuple(parts), ", "),
    )


def new_additions(
    texts: Sequence[str], questions: Sequence[Question], snapshot: Snapshot, scheduler: Scheduler
) -> list[Addition]:
    """What the values of the flag add to a cluster in which these questions are asked.

    Raises:
        UsageError, InputError: see ``additions`` and ``known``; each proposal of such an error can be used.
    """
    try:
        return known(additions([parse(text) for text in texts], snapshot, scheduler), questions, snapshot, scheduler)
    except FlagValueError as error:
        error.instead = with_a_driver(error.typed, snapshot) or error.instead
        usable = _usable(error, texts, questions, snapshot, scheduler)
        error.instead = list({value: (label, value) for label, value in usable}.values())[:_MOST_PROPOSALS]
        raise


def _usable(
    error: FlagValueError,
    texts: Sequence[str],
    questions: Sequence[Question],
    snapshot: Snapshot,
    scheduler: Scheduler,
    again: bool = True,
) -> Iterator[tuple[str, str]]:
    """The proposals of an error that can be used; in place of another one what is proposed for that."""
    for label, value in error.instead:
        others = [value if text == error.typed else text for text in texts]
        try:
            known(additions([parse(text) for text in others], snapshot, scheduler), questions, snapshot, scheduler)
        except FlagValueError as next_error:
            if again:
                for further, usable in _usable(next_error, others, questions, snapshot, scheduler, again=False):
                    # One that changes what was proposed says what it changes; one that adds to it says both.
                    adds = set(value.split(",")) <= set(usable.split(","))
                    yield f"{label}, {further[:1].lower()}{further[1:]}" if adds else further, usable
        except DraError:
            continue
        else:
            yield label, value


def known(
    wanted: Sequence[Addition], questions: Sequence[Question], snapshot: Snapshot, scheduler: Scheduler
) -> list[Addition]:
    """The additions, with all that is asked of their devices; of several products the first, where that is no matter.

    Raises:
        InputError: what is asked reads of devices in words what nobody has said.
    """
    askings = [QuestionInCluster(question, snapshot, scheduler) for question in questions]
    out = []
    for addition in wanted:
        if addition.words is not None:
            try:
                words = _all_said(addition, addition.words, askings)
            except FlagValueError as error:
                text = addition.new.text
                raise FlagValueError(f'{FLAG} "{text}": {error}', text, error.instead) from None
            words, around = furnished(words, questions, snapshot, scheduler)
            addition = replace(addition, nodes=(words.node,), words=words, around=around)
        out.append(addition)
    return out


def _all_said(addition: Addition, words: NodeInWords, askings: Sequence[QuestionInCluster]) -> NodeInWords:
    """The node in words, of whose devices all is known that the questions read. Raises FlagValueError elsewhere."""
    for asking in askings:
        if others := of_other_drivers(words, asking):
            raise _several_drivers(addition, words, others, asking)
    if any(missing(words, asking) for asking in askings) and all_the_same(words, askings):
        words = of_first_product(words, askings[0].snapshot)
    for asking in askings:
        if names := missing(words, asking):
            raise _unsaid(words, names, asking)
    for asking in askings:
        if values := taken_in_its_place(words, asking):
            raise _other_product(words, asking.question, values)
    return words


def _unsaid(words: NodeInWords, names: Mapping[str, str], asking: QuestionInCluster) -> FlagValueError:
    way = saying_all(words, names, asking)
    read = _claims(asking.question, "read")
    text = f"{read} {some(list(names))} of devices, which is not known of these; add it, or {FILE}"
    if way.products and len(words.products) > 1:
        text = f"they may be {some(words.products)}; {read} {some(list(names))} of devices, so name one"
    return FlagValueError(text, instead=way.values)


def _several_drivers(
    addition: Addition, words: NodeInWords, others: Mapping[str, str], asking: QuestionInCluster
) -> FlagValueError:
    """That the claims need devices of other drivers as well, of which words say nothing."""
    drivers = {words.driver.name, *others.values()}
    publish: dict[str, set[str]] = {}
    for slice_ in asking.snapshot.slices:
        publish.setdefault(slice_.scope.node_name, set()).add(slice_.driver)
    like = [name for name, its in publish.items() if name in asking.snapshot.real.nodes and drivers <= its]
    text = (
        f"{_claims(asking.question, 'need')} devices of {some(sorted({*others.values()}))} too "
        f"(request {some(list(others))}), of which words say nothing; name a node that has both, or {FILE}"
    )
    end = addition.new.described().end
    return FlagValueError(text, instead=[("Like a node that has both", f"{name}{end}") for name in like[:1]])


def _other_product(words: NodeInWords, question: Question, values: Mapping[str, str]) -> FlagValueError:
    """Error that the answer would rest on which product is meant: those of the cluster are not taken, others are."""
    others = [product for product in values if product not in words.products]
    text = (
        f"they may be {some(words.products)}, which the cluster has, or {some(others)}; {_claims(question, 'take')} "
        f"{'only the latter' if len(others) == 1 else 'only the others'}, so name one"
    )
    return FlagValueError(text, instead=[(f"With {product}", value) for product, value in values.items()])


def _claims(question: Question, verb: str) -> str:
    about = f"{question.kind} {question.namespace}/{question.name}"
    return f"the claims of {about} {verb}" if question.pod is not None else f"{about} {verb}s"


def _of_file(new: NewNodes, scheduler: Scheduler) -> Addition:
    from kubectl_dra.cluster.files import read_snapshot

    if new.words:
        raise UsageError(f"only count=N goes with a file, not {new.words[0][0]}=")
    # With the workloads, of which there are none, what is written is kept.
    read = read_snapshot([new.first], workloads=True)
    others = [kind for kind in (*DRA_KINDS[1:], "Pod") if not read.is_gap(kind)]
    if not read.nodes or others:
        what = f"holds a {others[0]}" if others else "holds no Node"
        raise InputError(f"it {what}; it has to hold Nodes and their ResourceSlices alone")
    for (kind, _, name), written in read.written.items():
        if refusal := _refusal(written, scheduler):
            raise InputError(f"{kind} {name} is not valid: {refusal}")
    slices: dict[str, list[ResourceSlice]] = {name: [] for name in read.nodes}
    for slice_ in read.slices:
        home = slice_.scope.node_name or next(iter(slices))
        if home not in slices:
            raise InputError(f"ResourceSlice {slice_.name} is of node {home}, which is not in the file")
        slices[home].append(slice_)
    for pool, own in newest_slices(read.slices).items():
        if len(own) < own[0].slice_count:
            found, expected = amount(len(own), "ResourceSlice"), own[0].slice_count
            raise InputError(
                f"it holds {found} of pool {pool}, whose resourceSliceCount says {expected}: add what is missing"
            )
    copies = tuple(NodeCopy("", 0, _as_new(read.nodes[name]), slices=own) for name, own in slices.items())
    return Addition(new, copies[0].node.name, copies)


def _refusal(written: Mapping[str, Any], scheduler: Scheduler) -> str:
    """Why the API server would not take what a slice says; empty if it would."""
    from kubectl_dra.admission.server.verdict import check

    verdict = check(written, release=scheduler.release, features=scheduler.gates)
    # What only a stored object has is no matter: its server has taken the rest.
    wrong = [each for each in verdict.violations if each.field.startswith("spec")] if verdict is not None else []
    return f"{wrong[0].field}: {wrong[0].message}" if wrong else ""


def _as_new(node: Node) -> Node:
    """A node of a file as it will be: how the one was whose file this is says nothing of it."""
    return Node(replace(node.metadata, uid="", creation_timestamp=""), node.spec, replace(node.status, conditions=()))
