"""What ``share`` does: write a manifest for each way, place its pods, report; or print one of the manifests."""

from __future__ import annotations

import sys
from typing import Final

from msgspec.structs import replace

from kubectl_dra.api.quantity import Quantity, QuantityError
from kubectl_dra.cli.command_line import assumed_flags, cluster_flags, repeated
from kubectl_dra.cli.explain.reading import applied, completed_for_new, read_cluster, settings_of
from kubectl_dra.cli.flags import ShareBy, ShareFlags
from kubectl_dra.cli.live import Progress
from kubectl_dra.cli.options import ConnectionFlags, Output
from kubectl_dra.cluster.cluster import Cluster
from kubectl_dra.cluster.files import read_snapshot
from kubectl_dra.cluster.snapshot import Snapshot
from kubectl_dra.command import CommandLine
from kubectl_dra.errors import InputError, UsageError
from kubectl_dra.exit_codes import EXIT_NO, EXIT_UNDETERMINED, Verdict
from kubectl_dra.explain.question.what_if_flag import require_toleration, toleration_of
from kubectl_dra.fit.existing_pods import missing_namespaces
from kubectl_dra.fit.shared_template import manifest_of, read_manifest, shared_template
from kubectl_dra.fit.sharing import IN_ONE_POD, SharingWay, SharingWriter
from kubectl_dra.fit.sharing_proof import ShareAnswer, Tolerating, TriedWay, matching_devices, tried
from kubectl_dra.fit.workload import workloads_of
from kubectl_dra.manifests.inputs import STDIN_NAME, find_inputs, read
from kubectl_dra.safe_output import put
from kubectl_dra.text import did_you_mean_or_known

DEFAULT_PODS: Final = 2
MOST_TAINTS: Final = 3
"""So many taints of nodes, one after the other, are supposed to be tolerated."""


def run(flags: ShareFlags, connection: ConnectionFlags) -> int:
    """Tries and prints; returns the exit code."""
    _check(flags)
    cluster, namespace = read_cluster(flags, connection)
    answer, taints = _answer(flags, cluster, namespace, connection), list[str]()
    again = answer
    while flags.device_class and not again.works and again.taint and len(taints) < MOST_TAINTS:
        taints.append(again.taint)
        tolerating = replace(flags, tolerate=(*flags.tolerate, *taints))
        again = _answer(tolerating, cluster, namespace, connection)
    if taints:
        answer = replace(answer, tolerating=Tolerating(tuple(taints), again))
    return _print(answer, flags, connection)


def _answer(flags: ShareFlags, cluster: Snapshot, namespace: str, connection: ConnectionFlags) -> ShareAnswer:
    """The ways, tried on a cluster."""
    settings = settings_of(flags, cluster)
    name, text = _manifest(flags)
    documents = read_manifest(text, name, flags.namespace)
    paths = [name] if flags.manifests and name != STDIN_NAME else ["-"]
    manifest = read_snapshot(paths, namespace=namespace, stdin=text.encode(), workloads=True, only=flags.namespace)
    missing = missing_namespaces(workloads_of(manifest), applied(cluster, replace(manifest, pods={}), flags))
    cluster = Cluster(cluster).adding_namespaces(missing).snapshot if missing else cluster
    template = shared_template(documents, name, namespace, cluster.templates)
    device_class = template.device_class
    if device_class not in cluster.classes and not cluster.unread(("DeviceClass",)):
        hint = did_you_mean_or_known(device_class, cluster.classes)
        raise InputError(f"there is no DeviceClass {device_class}; {hint}")
    if not flags.snapshots:
        cluster = completed_for_new(manifest, cluster, flags, connection)
    devices, located, left, classes_of = matching_devices(device_class, cluster, settings)
    matching = [device for device, _ in located]
    one_pod = flags.containers is not None
    taken = (template.namespace or namespace, template.name) in cluster.claims
    gates = settings.scheduler.gates
    writer = SharingWriter(documents, template, gates, devices, matching, one_pod, taken, located, left, classes_of)
    with Progress() as progress:

        def overlaid(manifest: Snapshot) -> Snapshot:
            return applied(cluster, replace(manifest, pods={}), flags)

        ways = list(IN_ONE_POD if flags.containers else SharingWay)
        ways = [SharingWay(flags.by.value)] if flags.by is not None else ways
        tried_ways = tried(writer, ways, flags.part, cluster, namespace, settings, overlaid, progress)
    given = text if flags.manifests else ""
    return ShareAnswer(tuple(tried_ways), device_class, flags.containers or 0, missing, len(matching), given=given)


def _check(flags: ShareFlags) -> None:
    if flags.manifests and flags.device_class:
        raise UsageError("--class goes without -f: the manifest names the class")
    if not flags.manifests and not flags.device_class:
        raise UsageError("say what shares: -f MANIFEST, or --class CLASS with --pods N or --containers N")
    if flags.manifests and (flags.pods or flags.containers):
        raise UsageError("--pods and --containers go with --class; a manifest says how many there are")
    if flags.pods and flags.containers:
        raise UsageError("--containers is about one pod; leave --pods out")
    if flags.containers and flags.by is not None and flags.by.value not in IN_ONE_POD:
        raise UsageError(f"the containers of one pod share by {', '.join(IN_ONE_POD)}")
    if flags.part and flags.by not in (None, ShareBy.capacity):
        raise UsageError("--part is for --by capacity")
    if flags.part:
        _check_part(flags.part)
    if flags.tolerate and not flags.device_class:
        raise UsageError("--tolerate goes with --class; a manifest has the pods' tolerations")
    for taint in flags.tolerate:
        require_toleration(taint, f'--tolerate "{taint}"')
        if not toleration_of(taint).key:
            raise UsageError(f'--tolerate "{taint}" names no taint: write KEY, KEY=VALUE or KEY=VALUE:EFFECT')
    if len(flags.manifests) > 1:
        raise UsageError("-f takes one file, whose text is written again")


def _check_part(part: str) -> None:
    try:
        some = Quantity.parse(part).nanos > 0
    except QuantityError:
        raise UsageError(f'--part "{part}" is not a quantity, such as 10Gi') from None
    if not some:
        raise UsageError(f"--part {part} gives a pod nothing")


def _manifest(flags: ShareFlags) -> tuple[str, str]:
    """The name and the text of the manifest that the ways are written from."""
    if flags.device_class:
        one_pod = flags.containers is not None
        pods = 1 if one_pod else flags.pods or DEFAULT_PODS
        tolerations = [
            {field: value for field in ("key", "operator", "value", "effect") if (value := getattr(toleration, field))}
            for toleration in map(toleration_of, flags.tolerate)
        ]
        return "the manifest", manifest_of(flags.device_class, pods, flags.containers or 1, tolerations)
    from kubectl_dra.manifests.source import decode

    (file, *more) = find_inputs(flags.manifests)
    if more:
        raise UsageError("-f takes one file, whose text is written again")
    return file.name, decode(read(file), file.name).text


def _print(answer: ShareAnswer, typed: ShareFlags, connection: ConnectionFlags) -> int:
    from kubectl_dra.report.sharing import to_json, write_needs, write_ways

    ways = answer.ways
    if typed.by is not None and ways[0].written.impossible:
        from kubectl_dra.report.phrases import written

        raise InputError(f"{typed.by}: {written(ways[0].written.impossible)}")
    codes = {_code(way) for way in answer.working if way.fit is not None}
    code = next((code for code in (0, EXIT_UNDETERMINED) if code in codes), EXIT_NO)
    code = EXIT_NO if answer.missing_namespaces else code
    where = cluster_flags(typed, connection)
    if typed.output is not Output.text:
        from kubectl_dra.report.json_output import write

        write(to_json(answer, where), typed.output.value, sys.stdout, code)
        return code
    if typed.by is not None:
        put(ways[0].written.text)
        write_needs(answer, where)
        return code
    of_class = {
        "--class": (typed.device_class,),
        "--pods": (str(typed.pods),) if typed.pods else (),
        "--containers": (str(typed.containers),) if typed.containers else (),
        "--tolerate": typed.tolerate,
    }
    scheduled = {"-n": (typed.namespace,), **assumed_flags(typed)}
    flags = {"-f": typed.manifests, **of_class, **scheduled}
    command = CommandLine(("kubectl", "dra", "share", *repeated(flags), *where.flags))
    fit = ("kubectl", "dra", "fit", *repeated({"-f": typed.manifests, **scheduled}), *where.flags, "--explain")
    if typed.manifests:
        otherwise = CommandLine(fit)
    elif answer.tolerating is not None and answer.tolerating.answer.works:
        otherwise = CommandLine((*command.argv, *repeated({"--tolerate": answer.tolerating.taints})))
    elif (divided := answer.divided) is not None and divided.enough:
        fewer = {**of_class, "--pods": (str(-(-answer.pods // divided.claims)),)}
        otherwise = CommandLine(("kubectl", "dra", "share", *repeated({**fewer, **scheduled}), *where.flags))
    elif typed.part and answer.devices:
        # Without --part an amount is proposed.
        otherwise = command
    else:
        of_class = {"--class": (typed.device_class,)} if answer.devices else {}
        otherwise = where.asks(CommandLine(("kubectl", "dra", "devices", *repeated(of_class))))
    write_ways(answer, command, typed.color.value, where=where, otherwise=otherwise, amount_typed=bool(typed.part))
    return code


def _code(way: TriedWay) -> int:
    if way.works:
        return 0
    return EXIT_UNDETERMINED if way.fit is not None and way.fit.verdict is Verdict.UNDETERMINED else EXIT_NO
