"""Workers of Spark that die while a release is drawn: the release is the same, or there is none.

A simulation draws from a seed, so that a release with a fault can be compared with one without.
"""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

from congenial.errors import ReleaseError
from congenial.releases import directory as files
from congenial.verification.verdict import verify
from support.city import listing, make_city
from support.parts import PARTED, make
from support.spark import NEEDS_SPARK, WORKERS, free_port, make_session

pyspark = pytest.importorskip("pyspark", reason="PySpark is not installed; `make spark` adds it")
pytestmark = NEEDS_SPARK
HOME = Path(pyspark.__file__).parent
PARTS = 12
# Each part is counted by a task of its own, so that some are left when a worker dies.
MANY_TASKS = {
    "spark.sql.shuffle.partitions": str(PARTS),
    "spark.sql.adaptive.coalescePartitions.enabled": "false",
    # One attempt at a stage may find only one lost shuffle block, and a test deletes many.
    "spark.stage.maxConsecutiveAttempts": "50",
    # The rows are read by several tasks.
    "spark.sql.files.maxPartitionBytes": "15000",
}


@pytest.fixture(scope="module")
def workers(tmp_path_factory):
    """A master and two workers of Spark on this machine; yield the folder of the workers' files."""
    place, port = tmp_path_factory.mktemp("cluster"), free_port()
    env = os.environ | WORKERS | {"SPARK_LOCAL_IP": "127.0.0.1", "SPARK_HOME": str(HOME)}
    env["SPARK_LOCAL_DIRS"] = str(place / "local")
    master = f"spark://127.0.0.1:{port}"
    deploy, own = "org.apache.spark.deploy", ["--host", "127.0.0.1", "--webui-port", "0"]
    started = [[f"{deploy}.master.Master", *own, "--port", str(port)]]
    for name in ("a", "b"):
        folder = ["--work-dir", str(place / name), "--cores", "1", "--memory", "1g"]
        started.append([f"{deploy}.worker.Worker", *own, *folder, master])
    running = []
    with (place / "log").open("wb") as log:
        for arguments in started:
            command = [str(HOME / "bin" / "spark-class"), *arguments]
            running.append(subprocess.Popen(command, env=env, stdout=log, stderr=log))
        wait_for(lambda: (place / "log").read_text().count("Registering worker") == 2)
        yield place, master
        for process in running:
            process.terminate()
        for process in running:
            process.wait(30)


def wait_for(found, seconds=120.0):
    """Wait until something is found, and return it."""
    end = time.monotonic() + seconds
    while not (result := found()):
        assert time.monotonic() < end
        time.sleep(0.002)
    return result


@pytest.fixture(scope="module")
def cluster(workers):
    _, master = workers
    with pytest.MonkeyPatch.context() as patch:
        for name, value in WORKERS.items():
            patch.setenv(name, value)
        settings = {"spark.executor.memory": "512m", "spark.executor.cores": "1"}
        session = make_session(master, **settings, **MANY_TASKS)
        yield session
        session.stop()


def processes(word):
    """Return the processes of this user whose command has a word, by number."""
    found = {}
    for place in Path("/proc").glob("[0-9]*"):
        try:
            text = (place / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except OSError:  # it has ended
            continue
        if word in text:
            found[int(place.name)] = text
    return found


def executors(session):
    """Return the executors of a session on this machine."""
    own = session.sparkContext.applicationId
    return [p for p, text in processes("CoarseGrainedExecutorBackend").items() if own in text]


def repeated(session):
    """Return how many tasks of a session have failed, and how many stages ran again, so far."""
    tracker = session.sparkContext.statusTracker()
    jobs = map(tracker.getJobInfo, tracker.getJobIdsForGroup(None))
    stages = [tracker.getStageInfo(stage) for job in jobs if job for stage in job.stageIds]
    known = [stage for stage in stages if stage is not None]
    return sum(v.numFailedTasks for v in known), sum(v.currentAttemptId for v in known)


def below(parents):
    """Return the processes of PySpark whose parents are some processes."""
    found = {}
    for pid in processes("pyspark.daemon"):
        with suppress(OSError):  # it has ended
            found[pid] = int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])
    return [pid for pid, parent in found.items() if parent in parents]


# Sections of the plan.
METHODS = {
    "topdown": PARTED,
    "conditioning": {},
    "imaging": {"method": 'name = "imaging"'},
    "posterior": {"method": 'name = "posterior"'},
}
# Files that a stage has after the first task of a phase of Spark, and how many the fault waits for.
PHASES = {
    "counting": ("counts/*", 1),
    "shapes": ("results/shape.*", 1),
    "messages": ("results/message-*", 1),
    "measuring": ("results/measured.*", 1),
    "moving": ("results/moved-2.*", 1),
    "drawing": ("results/drawn-*", 1),
    "late": ("results/drawn-*", PARTS - 3),
}


def in_phases(**phases):
    """Run a test in some phases of each method."""
    cases = [
        pytest.param(method, *PHASES[name], id=f"{method}-{name}")
        for method, names in phases.items()
        for name in names
    ]
    return pytest.mark.parametrize(("method", "pattern", "count"), cases, indirect=["method"])


@pytest.fixture(params=METHODS)
def method(request):
    return request.param


@pytest.fixture(scope="module")
def towns(tmp_path_factory):
    """Write the rows and the plan of a town of twelve parts, for each method."""
    zones = {zone: f"b{zone % PARTS:02}" for zone in range(PARTS * 300)}
    trips = {zone: zone % 7 for zone in zones}
    places = {method: tmp_path_factory.mktemp(method) for method in METHODS}
    for method, place in places.items():
        make_city(place, **METHODS[method], zones=zones, trips=trips)
    return places


@pytest.fixture
def town(method, towns):
    return towns[method]


def frame_of(session, town):
    # files as they are: of rows that were shuffled before, Spark may refuse to repeat what it lost
    return session.read.csv(str(town / "rows.csv"), header=True, schema="hour int, zone int")


def watched(town, pattern, count, act):
    """Start a thread that acts once the stage has so many files of a pattern; return it."""

    def there():
        found = len(list(town.glob(f".*.stage/{pattern}")))
        return found if found >= count else 0

    def run():
        left.append(PARTS - wait_for(there))
        act()

    left = []
    thread = threading.Thread(target=run)
    thread.start()
    return thread, left


def in_time(was):
    """Skip a test whose fault came after the work that it should hit; its result was checked."""
    if not was:
        pytest.skip("the fault came too late to hit anything, on this busy machine")


def released(place):
    names = [file.name for file in place.iterdir() if file.name != files.CERTIFICATE]
    assert set(files.TABLE) <= set(names)
    return {name: (place / name).read_bytes() for name in names}


@pytest.fixture
def calm(cluster, town):
    """The release that is made if nothing fails; it is made once."""
    if not (town / "calm").exists():
        make(town, "calm", parts="borough", on=cluster, frame=frame_of(cluster, town), simulate=5)
    return released(town / "calm")


@in_phases(
    topdown=("counting", "drawing", "late"),
    conditioning=("counting", "shapes", "messages", "drawing", "late"),
    imaging=("measuring", "moving", "drawing"),
    posterior=("moving",),
)
def test_an_executor_that_is_killed_in_each_phase_changes_nothing(
    cluster, method, pattern, count, town, calm, request
):
    wait_for(lambda: len(executors(cluster)) == 2)
    name, kill = request.node.callspec.id, partial(os.kill, executors(cluster)[0], signal.SIGKILL)
    thread, left = watched(town, pattern, count, kill)
    make(town, name, parts="borough", on=cluster, frame=frame_of(cluster, town), simulate=5)
    thread.join()
    assert released(town / name) == calm
    assert [check for check in verify(town / name) if not check.passed] == []
    assert [path for path in listing(town) if "stage" in path or "partial" in path] == []
    in_time(left[0] > 0)


@pytest.mark.parametrize("method", ["topdown"], indirect=True)  # only counting shuffles
def test_lost_shuffle_blocks_are_made_again(cluster, workers, town, calm):
    lost = []

    def lose():
        for file in workers[0].rglob("shuffle_*"):
            file.unlink(missing_ok=True)
            lost.append(file)

    wait_for(lambda: len(executors(cluster)) == 2)
    before = repeated(cluster)
    thread, left = watched(town, *PHASES["counting"], lose)
    make(town, "lost", parts="borough", on=cluster, frame=frame_of(cluster, town), simulate=5)
    thread.join()
    assert released(town / "lost") == calm
    in_time(lost and left[0] > 0 and repeated(cluster)[1] > before[1])


def test_a_task_that_is_killed_after_its_draw_is_drawn_the_same(cluster, town, calm):
    def kill_pythons():
        daemons = below(executors(cluster))  # Spark's own parents of the processes that draw
        for pid in below(daemons):
            os.kill(pid, signal.SIGKILL)

    wait_for(lambda: len(executors(cluster)) == 2)
    before = repeated(cluster)
    thread, left = watched(town, *PHASES["drawing"], kill_pythons)
    make(town, "killed", parts="borough", on=cluster, frame=frame_of(cluster, town), simulate=5)
    thread.join()
    assert released(town / "killed") == calm
    in_time(left[0] > 0 and repeated(cluster)[0] > before[0])


@in_phases(
    topdown=("drawing",),
    conditioning=("shapes", "messages", "drawing"),
    imaging=("measuring", "moving"),
    posterior=("moving",),
)
def test_an_attempt_that_draws_otherwise_fails_the_release(cluster, pattern, count, town):
    def forge():
        [file, *_] = town.glob(f".*.stage/{pattern}")
        step, number, _ = file.name.split(".")
        file.with_name(f"{step}.{number}.{'0' * 64}").touch()

    thread, _ = watched(town, pattern, count, forge)
    with pytest.raises(ReleaseError, match="two attempts at a part of the release differ"):
        make(town, parts="borough", on=cluster, frame=frame_of(cluster, town))
    thread.join()
    assert not [path for path in listing(town) if path.startswith(("out", "."))]


@in_phases(topdown=("drawing",), conditioning=("messages", "drawing"), imaging=("measuring",))
def test_retries_that_are_used_up_fail_the_release(cluster, pattern, count, town):
    def lose():
        for file in town.glob(".*.stage/counts/*"):
            file.unlink()

    thread, _ = watched(town, pattern, count, lose)
    with pytest.raises(ReleaseError, match="Spark failed to draw the parts"):
        make(town, parts="borough", on=cluster, frame=frame_of(cluster, town))
    thread.join()
    assert not [path for path in listing(town) if path.startswith(("out", "."))]


@pytest.fixture
def small_disk(tmp_path_factory):
    """A disk of 300 KiB, where the system lets this user mount one."""
    place = tmp_path_factory.mktemp("disk")
    mount = ["mount", "-t", "tmpfs", "-o", "size=300k", "tmpfs", str(place)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("this user may not mount a small disk")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


def test_a_full_disk_fails_the_release_and_leaves_nothing(cluster, town, small_disk):
    from congenial.plan.plan import read_plan
    from congenial.releases.making.make_release import release

    for filled in (120_000, 240_000):  # the disk is full later or sooner
        (small_disk / "other").write_bytes(bytes(filled))
        with pytest.raises(ReleaseError, match=r"Spark failed|cannot be written"):
            release(
                read_plan(town / "plan.toml"),
                small_disk / "out",
                base=town,
                parts="borough",
                on=cluster,
                frame=frame_of(cluster, town),
            )
        assert listing(small_disk) == ["other"]
