# The start of the one-file program: it must parse on any Python, so that it can say that this one is too old.
"""Unpacks what the file carries into the user's cache, once per content, and runs it from there."""

import os
import sys

DIGEST = "@DIGEST@"
PYTHONS = "@PYTHONS@".split()
MACHINE = "@MACHINE@"
COUNT = "count"


def main():
    here = "%d.%d" % sys.version_info[:2]
    if here not in PYTHONS:
        _other_python(here)
    archive = os.path.abspath(os.path.dirname(__file__))
    name = "%s-%s" % (DIGEST, here)
    root = _cached(archive, name, here)
    if root is None:
        sys.exit(_without_cache(archive, here))
    _run(root, here)


def _run(root, here):
    # The archive itself leaves sys.path: looking into it would slow down every import.
    sys.path[0:1] = [os.path.join(root, "lib"), os.path.join(root, "lib-" + here)]
    os.environ["KUBECTL_DRA_ARCHIVE"] = sys.argv[0]
    from kubectl_dra.__main__ import main as run

    run()


def _cached(archive, name, here):
    """The directory with the unpacked files; None where no cache can be had that only this user writes."""
    home = _cache_home()
    # "~" is left for a user without an entry in passwd, as in a container that is run with any uid.
    if not os.path.isabs(home):
        return None
    parent = os.path.join(home, "kubectl-dra", "pyz")
    root = os.path.join(parent, name)
    try:
        if os.path.isdir(root) and not _is_whole(root):
            _move_away(parent, root)
        if not os.path.isdir(root):
            os.makedirs(parent, 0o700, exist_ok=True)
            _unpack_beside(archive, parent, root, here)
        found = os.stat(root)
        if hasattr(os, "geteuid") and (found.st_uid != os.geteuid() or found.st_mode & 0o022):
            return None
        os.utime(root)
        return root
    except OSError:
        return None


def _is_whole(root):
    """Whether there are as many files as were unpacked: programs that tidy up delete some of them."""
    try:
        with open(os.path.join(root, COUNT)) as stream:
            return stream.read() == str(_entries(root))
    except OSError:
        return False


def _entries(root):
    """The number of files and folders, without what Python compiles. A few milliseconds."""
    count, left = 0, [os.path.join(root, name) for name in os.listdir(root) if name.startswith("lib")]
    while left:
        with os.scandir(left.pop()) as entries:
            for entry in entries:
                if entry.name != "__pycache__":
                    count += 1
                    if entry.is_dir(follow_symlinks=False):
                        left.append(entry.path)
    return count


def _move_away(parent, root):
    """Removes what is broken, at once for everybody else."""
    import shutil
    import tempfile

    scratch = tempfile.mkdtemp(prefix=".old-", dir=parent)
    try:
        os.rename(root, os.path.join(scratch, "root"))
    except OSError:
        # Another run was first.
        if os.path.isdir(root) and not _is_whole(root):
            raise
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _cache_home():
    if os.environ.get("XDG_CACHE_HOME"):
        return os.environ["XDG_CACHE_HOME"]
    if os.name == "nt" and os.environ.get("LOCALAPPDATA"):
        return os.environ["LOCALAPPDATA"]
    if sys.platform == "darwin":
        return os.path.expanduser("~/Library/Caches")
    return os.path.expanduser("~/.cache")


def _unpack_beside(archive, parent, root, here):
    """Unpacks under another name and renames: nobody ever sees half of it, and who comes second takes the first's."""
    import shutil
    import tempfile

    scratch = tempfile.mkdtemp(prefix=".new-", dir=parent)
    try:
        _unpack(archive, scratch, here)
        with open(os.path.join(scratch, COUNT), "w") as stream:
            stream.write(str(_entries(scratch)))
        try:
            os.rename(scratch, root)
        except OSError:
            if not os.path.isdir(root):
                raise
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    _forget_old(parent)


def _unpack(archive, root, here):
    import io
    import zipfile

    with zipfile.ZipFile(archive) as outer:
        payload = io.BytesIO(outer.read("payload.zip"))
    with zipfile.ZipFile(payload) as inner:
        wanted = ("lib/", "lib-%s/" % here)
        for name in inner.namelist():
            if name.startswith(wanted):
                inner.extract(name, root)


def _forget_old(parent):
    """Removes what no run has touched for 30 days."""
    import shutil
    import time

    for name in os.listdir(parent):
        path = os.path.join(parent, name)
        if os.stat(path).st_mtime < time.time() - 30 * 86400:
            shutil.rmtree(path, ignore_errors=True)


def _without_cache(archive, here):
    """Runs from a private temporary directory that is removed afterwards; slow each time, but it works."""
    import shutil
    import subprocess
    import tempfile

    root = tempfile.mkdtemp(prefix="kubectl-dra-")
    try:
        _unpack(archive, root, here)
        paths = [os.path.join(root, "lib"), os.path.join(root, "lib-" + here)]
        code = "import sys; sys.path[0:1] = %r; from kubectl_dra.__main__ import main; main()" % (paths,)
        return subprocess.call([sys.executable, "-c", code] + sys.argv[1:])
    finally:
        shutil.rmtree(root, ignore_errors=True)


def _other_python(here):
    """Runs this file with a Python it has modules for, if the PATH has one; ends with a sentence otherwise."""
    for version in reversed(PYTHONS):
        for folder in os.environ.get("PATH", "").split(os.pathsep):
            program = os.path.join(folder, "python" + version)
            if os.access(program, os.X_OK) and os.name != "nt":
                os.execv(program, [program] + sys.argv)
    sys.stderr.write(
        "error: this kubectl-dra needs Python %s (%s); this is Python %s (%s), and no other is on the PATH\n"
        % (" or ".join(PYTHONS), MACHINE, here, sys.executable)
    )
    sys.exit(2)


if __name__ == "__main__":
    main()
