"""The allow-list of ``snapshot --anonymize``: the words and forms that say nothing about whose cluster it is.

A text stays if each of its words is in the list or is a small number; every other word is replaced. The page about
anonymizing is generated from here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Final

WORDS: Final[Mapping[str, str]] = {
    "Kubernetes' objects, fields, states and messages": """
        a above access account across action active actual adapter add added address addresses admin administrator
        admission affinity after again agent aggregated all allocatable allocate allocated allocating allocation
        allocations allocator allow allowed already also always amount amounts an and annotation annotations another
        anti any anyway api apis app appear apply apps architecture are arithmetic as ask asked at attach attachable
        attached attacher attaching attachment attempt attempts attribute attributes authorization auto autopartition
        autoscaler available average awaiting aws back backend background backoff bad balance bandwidth base basic
        batch be because been before behind being below best beta between bind binding bindings binds block blocked
        bool bools both bound broken bucket budget bug build burn bus busy but by bytes cache call came can cannot
        capability capable capacities capacity caused cel change changed changing channel check checks child claim
        claimed claiming claims class classes client cluster clusters code com combine common compare compatibility
        compatible compile completed component composite compute condition conditions config configuration conflict
        conflicts connect connected connection constraint constraints consume consumed consumer consumers consumes
        consuming contain container containers contains content context control controller core cores could count
        counter counters counts crash create created creating creation critical cron csi csidriver csinode current
        custom daemon daemonset data day days deadline deallocate deallocated deallocating deallocation debug decide
        declared dedicated default defaultpreemption defaults delay delete deleted deleting deletion denied dependency
        deployment deprecated derived desc description desired despite destination detach device deviceclass devices
        dial dialing did didn different directory disabled disappeared discovery disk disrupted disruption disruptions
        distinct do does doesn domain domains done down dra drain driver drivers drop dropped due duplicate duration
        during dynamic dynamicresources each effect eight elapsed elastic eligible else elsewhere empty enable enabled
        encountered end ended endpoint ends enforced enough entry env environment ephemeral equal equality err error
        errors eval evaluate evaluation event events every evict evicted eviction evictions exact exactly exceed
        exceeded exceeds except exclude exclusive exec execute execution exist existed existing exists exit expected
        expired explain expression expressions extended extendedresourceclaim extender extension external extra fail
        failed failing fails failure failures false fault feature features fetch field fields file files filesystem
        filter filtered filters final finalizer finalizers find finish finished first fit fits five fixed float for
        forbidden force foreground found four free from full fully function gang gangscheduling gaps gate gated gates
        general generate generated generation get getting given gone got grace group groups gt guaranteed had handle
        handled handler hard hardware has have having health healthy helpful here hint hold holders holding honor host
        hostname hosts hour hours http https id identical if ignore ignored ignores ignoring image images immediate
        implicit in inactive inactivity include included incompatible incomplete indices individual inference info
        ingress init initialize initialized inline inode insufficient integer interface internal interpodaffinity
        interruption into ints invalid involved io ips iqn is isn issue it item items its itself job jobs jobset join
        just k8s keep kept key keys kind kinds known kube kubelet kubernetes label labels large last lastly latest
        launch leader leaderworkerset leases least left length less let limit limitrange limits link linux list listed
        lists load local location lock long lookup loop lost lower lt lun made main maint maintain maintenance major
        make makes manage managed manager manifest manual many map mapped mapping mappings mark master match matched
        matches matching max maximal maximum may me meantime member members memory message meta metadata method migrate
        migrated milli min minimal minimum minor minute minutes mirror mismatch missing mix mixed mode modes monitors
        more most mount mounted move much multiple multiplier must mutex my mystery name named names namespace
        namespaces native near nearly need needed needs nested network never new next no node nodeaffinity nodename
        nodeports noderesourcesfit nodes nodeunschedulable nodevolumelimits noexecute nominated nominator non none
        noop nor normal noschedule not note notes nothing now null number numbers object objects observed obsolete of
        off old older on once one only onto op opaque open operation operations operator ops option optional or order
        ordinal ordinals orphan os other others our out over overhead overlap own owner page pages parallel parameter
        parameters parent parse parsing part partial passed path pattern pause pending per period permission permit
        persistent phase pick pid placement plan plane plugin plugins pod podclaim podgroup pods podtemplate
        podtopologyspread podvolume point pointer policies policy pool pools port portal ports possible postbind
        postfilter posting pre prebind preempt preempted preempting preemption preemptor preempts prefer preference
        prefernoschedule preferred prefilter prepare prepared prepares preparing presence present pressure prevent
        previous priority priorityclass private probe problem process processed processing product progress protection
        protocol provide provided provider provision provisioned provisioner provisioning public publish published
        pull pulled pulling pv pvc qualified quantities quantity queue queued quota quotas range rank ratio raw reach
        reached reaches read ready reason reasons rebuild received recent reclaim reconcile record recorded recreate
        recycle reduce ref refer reference references refuse refused regarding region register registered registration
        registry reject rejected related release released remaining remove removed renew repair replace replaced
        replica replicas replicaset report reporting reports request requested requests require required requirement
        requirements requires reschedule reservation reserve reserved reserves reset resize resource resourceclaim
        resourceclaims resourceclaimtemplate resourceclaimtemplates resources resourceslice resourceslices response
        rest restart restarted restarting result results retain retried retries retry return returned returns reuse
        revision role roles rollback root round rox rpc rule rules run runner running runs runtime runtimeclass rwo
        rwx same satisfy saw scalar scale scaled scaledown scaler scaling schedulable schedule scheduled scheduler
        scheduling schedulinggates schema scope scopes score scrape sctp search second seconds secret security see
        seen select selected selecting selection selector selectors self semver send sent serve served server service
        services session set sets setting settings setup several share shared shares sharing shortage should shrink
        shut shutdown sick side sidecar signal simd similar simple since single six size sizes skew skip sla slice
        slices slot slow small so sock some soon source space spec special spread stage stale standard standby start
        started starting starts startup state stateful statefulset status statuses step still stop stopped storage
        storagecapacity storageclass store strategy string strings struct structured sub subject submit submitted
        subrequest subresource succeeded success successful successfully such suffice sufficiency sufficient suitable
        suspend suspended sync synced system table tag taint tainted taints tainttoleration take taken target task
        tasks tcp team template templates temporary ten term terminate terminated terminating termination terms text
        than that the their them then there these they thing things this those three threshold through time timed
        timeout times timestamp to together tolerance tolerate tolerated toleration tolerations too topologies
        topology total track transient transition transport tried tries trigger triggered true try trying turn twice
        two type types udp uid unable unavailable unbound under unequal unhealthy unique unit units unix unknown
        unless unlimited unmodelled unnecessary unneeded unprepare unreachable unready unresolvable unresolved
        unsatisfiable unschedulable unset unsupported until untolerated unused up update updated upgrade upper uri use
        used user users uses using uuid v1alpha1 v1alpha2 v1alpha3 v1beta1 v1beta2 v1beta3 v2beta1 valid validate
        validation value values var verb version versions via victims virtual visible volume volumeattributesclass
        volumebinding volumeclaim volumerestrictions volumes volumezone wait waited waiting waits want wants warm warn
        warning was we webhook week weight well were what when whenever where whether which while who whole why will
        window windows with within without won worker workers workload workloads would write written wrong year yes
        yet you your zero zone zones
        """,
    "Kinds that own pods, and their API groups": """
        appwrapper argo argoproj clique cohort configuration cronjob cronjobs daemonsets deployments grove
        inferenceservice knative kserve kubeflow kubevirt kueue llm lws mpi mpijob nim nimservice notebook podclique
        pytorch pytorchjob ray raycluster rayjob rayservice replicationcontroller rollout rollouts route
        sparkapplication sparkoperator statefulsets tfjob trainer trainjob virtualmachine virtualmachineinstance
        volcano workflow workflows
        """,
    "Vendors, domains and clouds": """
        ai aks alpha amazonaws amd ascend aws azure beta calico ceph cilium cinder cncf cni com dev dranet ebs ec2 ecs
        efs eks example examples flannel furiosa gaudi gce gke google habana hami huawei ibm intel invalid io iscsi
        k8snetworkplumbingwg karpenter longhorn mellanox microsoft net nfd nfs nvidia openshift org pd portworx
        project qaic qualcomm rbd rc rebellions redhat rook sigs sriovnetwork tenstorrent test vllm vsphere x xilinx
        """,
    "Devices, their attributes and their products": """
        accelerator accelerators ada addr addressing aie alias alloc amd64 amdgpu ampere arch arm arm64 ascend asic
        atom attestation blackwell blackwells board boot brand bridge bw card cards ccd cdi celestial cell center chip
        chips clique clock cn coherent compliant connect connectx controller coprocessor copy corporation correctable
        cp cpu cpus cpx cu cuda decoders designs die dies display dma dpx driver dummy dummy0 ebpf ecc edge egm ei
        encapsulation encoder encoders engine engines eno enp ens epyc eswitch eth ether ethernet fabric fabricmanager
        fail family fast fec fft firmware flex fpga fraction frequency fw gb gbe gbps gen gen3 gen4 gen5 generic gfx
        gfx942 gh gi gib gid gpu gpuid gpuindex gpus gputype gpuuuid grace graphics guard guid half hbm hbm2 hbm2e
        hbm3 hbm3e hca hdr headless hgx hmm hopper huge hugepages hugetlb ib idx if index inf inf1 inf2 inferentia
        infiniband instance instances instinct interleave iommu ip ipu ipv4 ipv6 iris jpeg kb kernel kib lane lanes
        layer layer0 layer1 layer2 layer3 lib libraries like line linux llc lnc lovelace lower mac machine mb mbps
        media mellanox mem memorypartition mi mib mig millicores mlx mlx4 mlx5 model models module mps mtu multi
        multiprocessor multiprocessors ndr neuron neuroncore nic nics noc nps nps1 nps2 nps4 npu npus num numa nv
        nvdimm nvl nvlink nvme nvswitch nvswitches oam ofa onboard partition partitionable partitioned partitions
        passthrough pci pcie pciroot pf pfs phy physical plx pmem pool0 ports power pp profile qat qdr quadro quiet
        rack radeon rail rdma reset rng ro roce rocm rtx rx ryzen sata serdes serial series shareable sku sm smt sn
        socket sockets spare speed spx sr src sriov ssd strategy sub subsystem super switch sxm sxm2 sxm3 sxm4 sxm5 tb
        tc tcx technologies technology tensor tesla tf tflops thermal thread threads ti tib tick timeslicing titan
        topology tpu tpx tray trn trn1 trn2 trn3 turing tx ultra unified upi vcpu vendor verbs vf vfio vfs vgpu virt
        virtio vm volta vram warp wide width wsl xcd xcds xe xelink xgmi xid xlarge xlnx xpu
        """,
    "The selector language": """
        add all approximate as ascii attributes back bind bool bytes canonical capacity cel char cidr compare contains
        device distinct double driver duration dyn ends endswith escape exists family filter find first flatten float
        format get global greater has host in includes index int integer ip is isquantity issemver join last less link
        lists local loop lower major map mask matches math max min minor multicast named none not null of one optional
        or patch prefix quantity query quote regex replace reverse semver sets sign size slice sort split sprintf
        starts startswith strict string sub substring sum than timestamp to trim type uint unicast unspecified upper
        url value zone
        """,
}
"""Words by subject, in lower case."""

_WORDS: Final = frozenset(word for words in WORDS.values() for word in words.split())
_RUN: Final = re.compile(r"[^\W_]+")
_PART: Final = re.compile(r"[A-Z]{2,}s(?![a-z])|[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+|.")
_QUANTITY: Final = re.compile(r"[+-]?\d*\.?\d*(?:[eE][+-]?\d+|[KMGTPE]i?|[mnuk])?")
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:?\d\d)?")
_VERSION: Final = re.compile(r"v?\d+(?:\.\d+)+")
_ADDRESS: Final = re.compile(r"\d{1,3}(?:\.\d{1,3}){3}")
_SIGNED: Final = re.compile(r"[\n\t -~]*")
_UNSIGNED: Final = re.compile(r"[^\n\t -~]")
FORMS: Final[Mapping[str, str]] = {
    "numbers of up to four digits, and up to two letters beside them": "H100, 10gb, x16",
    "amounts": "80Gi, 250m, 1e3",
    "times": "2026-01-31T12:00:00Z",
    "versions": "570.86.15",
}
"""What stays besides the words, with examples."""
_MOST_DIGITS: Final = 4
_MOST_LETTERS: Final = 2
_LONGEST_MIXED: Final = 6


def is_amount(text: str) -> bool:
    """Whether a text is an amount or a time."""
    return bool(_QUANTITY.fullmatch(text) or _TIME.fullmatch(text))


def is_harmless(text: str) -> bool:
    """Whether a text can stay as it is: a version, or nothing but known words and small numbers."""
    if _VERSION.fullmatch(text):
        return not _ADDRESS.fullmatch(text)
    return _SIGNED.fullmatch(text) is not None and all(map(is_harmless_word, _RUN.findall(text)))


@lru_cache(maxsize=1 << 16)
def is_harmless_word(word: str) -> bool:
    """Whether a word without separators stays: it is known, or its parts are, as in ``driverVersion`` and ``H100``."""
    if word.lower() in _WORDS:
        return True
    parts = [part for part in _PART.findall(word) if part.lower() not in _WORDS]
    digits = sum(len(part) for part in parts if part.isascii() and part.isdigit())
    letters = [part for part in parts if not part.isdigit()]
    if digits > _MOST_DIGITS or any(len(part) > 1 or not part.isascii() for part in letters):
        return False
    return not letters or (len(letters) <= _MOST_LETTERS and len(word) <= _LONGEST_MIXED)


def each_word(text: str, change: Callable[[str], str]) -> str:
    """The text with each word that is not harmless changed, and signs other than ASCII's replaced."""
    if is_harmless(text):
        return text
    out: list[str] = []
    end = 0
    for found in _RUN.finditer(text):
        out.append(_signs(text[end : found.start()]))
        out.append(found[0] if is_harmless_word(found[0]) else change(found[0]))
        end = found.end()
    out.append(_signs(text[end:]))
    return "".join(out)


def _signs(text: str) -> str:
    return _UNSIGNED.sub("?", text)
