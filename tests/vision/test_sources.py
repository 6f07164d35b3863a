"""Frames of one recording, and of several: read once, with runs and progress."""

import warnings
import weakref

import numpy as np
import pytest

from ocfuse.exceptions import InvalidInputError, InvalidTypeError, MissingPackageError
from ocfuse.vision import FrameWarning, PatchKNN, PictureDetector, open_frames
from ocfuse.vision.frames import FrameSource, Video, corrupt, to_picture
from ocfuse.vision.sources import Runs
from tests.vision.cases import Blocks, needs, runs, scene

needs("PIL.Image", "av")
import av  # noqa: E402
from PIL import Image  # noqa: E402


@pytest.fixture
def folder(tmp_path):
    for i in (10, 2, 1):
        Image.fromarray(np.full((6, 8, 3), i, np.uint8)).save(tmp_path / f"frame_{i}.png")
    (tmp_path / "notes.txt").write_text("no picture")
    return tmp_path


def write_video(path, n=20, size=64, codec="mpeg4", rate=10):
    with av.open(str(path), "w") as container:
        stream = container.add_stream(codec, rate=rate)
        stream.width = stream.height = size
        stream.pix_fmt = "yuvj420p" if codec == "mjpeg" else "yuv420p"
        for i in range(n):
            frame = av.VideoFrame.from_ndarray(scene(i / n, size=size), format="rgb24")
            for packet in stream.encode(frame):
                container.mux(packet)
        for packet in stream.encode():
            container.mux(packet)
    return path


def test_a_folder_is_read_in_natural_order(folder):
    frames = list(open_frames(folder))
    assert [int(frame.image[0, 0, 0]) for frame in frames] == [1, 2, 10]
    assert [frame.index for frame in frames] == [0, 1, 2]
    assert frames[0].image.shape == (6, 8, 3)
    assert frames[0].image.dtype == np.uint8
    assert all(np.isnan(frame.time) for frame in frames)


def test_subfolders_and_lists_of_files_are_read(folder):
    (folder / "more").mkdir()
    Image.new("L", (4, 4), 77).save(folder / "more" / "a.JPG")
    assert len(list(open_frames(folder))) == 4
    chosen = [folder / "frame_10.png", str(folder / "frame_1.png")]
    assert [int(f.image[0, 0, 0]) for f in open_frames(chosen)] == [10, 1]


def test_corrupt_pictures_are_counted_and_left_out_with_one_warning(folder):
    (folder / "frame_3.png").write_bytes(b"this is no picture")
    (folder / "frame_4.png").write_bytes((folder / "frame_2.png").read_bytes()[:40])
    source = open_frames(folder)
    with pytest.warns(FrameWarning, match="2 of 5 frames") as caught:
        frames = list(source)
    assert len(caught) == 1
    assert [frame.index for frame in frames] == [0, 1, 4]
    assert source.skipped_ == [2, 3]
    assert source.n_frames_ == 5


def test_a_missing_package_is_no_corrupt_frame(folder, monkeypatch):
    def refuse(package, purpose, extra):
        raise MissingPackageError(f"pip install 'ocfuse[{extra}]'")

    monkeypatch.setattr("ocfuse.vision.frames.needed", refuse)
    with pytest.raises(MissingPackageError, match=r"\[video\]"):
        list(open_frames(folder))


def test_sixteen_bit_and_transparent_pictures(tmp_path):
    Image.fromarray(np.full((4, 4), 0x8000, np.uint16)).save(tmp_path / "deep.png")
    Image.new("RGBA", (4, 4), (9, 8, 7, 100)).save(tmp_path / "clear.png")
    clear, deep = open_frames(tmp_path)
    assert deep.image.tolist() == np.full((4, 4, 3), 128).tolist()
    assert clear.image[0, 0].tolist() == [9, 8, 7]


def test_a_video_keeps_its_times(tmp_path):
    frames = list(open_frames(write_video(tmp_path / "run.mp4")))
    assert len(frames) == 20
    assert np.allclose([frame.time for frame in frames], np.arange(20) / 10)
    assert np.abs(frames[5].image.astype(int) - scene(5 / 20).astype(int)).mean() < 8


def test_a_source_can_be_read_twice(tmp_path):
    source = open_frames(write_video(tmp_path / "run.mp4", n=5))
    first, second = list(source), list(source)
    assert all((a.image == b.image).all() for a, b in zip(first, second, strict=True))


def test_a_damaged_video_goes_on(tmp_path):
    path = write_video(tmp_path / "run.avi", n=30, codec="mjpeg")
    content = bytearray(path.read_bytes())
    begin = content.find(b"\xff\xd8", len(content) // 2)
    end = content.find(b"\xff\xd8", begin + 2)
    content[begin : end - 16] = bytes(end - 16 - begin)
    path.write_bytes(bytes(content))
    source = open_frames(path)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        frames = list(source)
    assert source.n_frames_ == 30
    assert len(frames) == 29
    assert [w.category for w in caught] == [FrameWarning]


def test_a_cut_off_video_gives_what_is_there(tmp_path):
    path = write_video(tmp_path / "run.avi", n=30, codec="mjpeg")
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FrameWarning)
        assert 5 < len(list(open_frames(path))) < 30


def most_held(source):
    """Return how many pictures a source holds at most besides the last one."""
    given, most = [], 0
    for frame in source:
        given.append(weakref.ref(frame.image))
        most = max(most, sum(picture() is not None for picture in given[:-1]))
    return most


def test_a_video_is_decoded_while_it_is_read(tmp_path, monkeypatch):
    """Neither pictures nor packets are kept: memory does not grow with the recording."""
    path = write_video(tmp_path / "run.mp4", n=60)
    n_packets = [0]

    def counted(container, *stream):
        for packet in container.demux(*stream):
            n_packets[0] += 1
            yield packet

    class Counted:
        def __init__(self, container):
            self.container, self.streams = container, container.streams

        def __enter__(self):
            return self

        def __exit__(self, *reason):
            self.container.close()

        def demux(self, *stream):
            return counted(self.container, *stream)

    monkeypatch.setattr(Video, "_open", lambda video: Counted(av.open(str(video.path))))
    ahead = [n_packets[0] - frame.index for frame in open_frames(path)]
    assert len(ahead) == 60
    assert 0 < max(ahead) < 20  # what the decoder needs before it gives the first picture
    assert most_held(open_frames(path)) <= 2


def test_an_array_file_is_read_picture_by_picture(tmp_path, monkeypatch):
    pictures = np.arange(40, dtype=np.uint8).repeat(16).reshape(40, 4, 4)
    np.save(tmp_path / "a.npy", pictures)
    asked, fromfile = [], np.fromfile
    monkeypatch.setattr(
        np, "fromfile", lambda file, dtype, n: asked.append(n) or fromfile(file, dtype, n)
    )
    source = open_frames(tmp_path / "a.npy")
    asked.clear()  # one picture was looked at
    for frame in source:
        assert frame.image[0, 0, 0] == frame.index
        assert asked == [16] * (frame.index + 1)
    assert len(asked) == 40
    assert most_held(source) <= 2


def test_arrays(tmp_path):
    grey = np.arange(2 * 4 * 4, dtype=np.uint8).reshape(2, 4, 4)
    np.savez(tmp_path / "one.npz", pictures=grey, labels=np.arange(2))
    for where in (grey, grey[..., np.newaxis], tmp_path / "one.npz"):
        frames = list(open_frames(where))
        assert (frames[1].image == grey[1][:, :, np.newaxis]).all()
    np.savez(tmp_path / "two.npz", a=grey, b=grey + 1)
    with pytest.raises(InvalidInputError, match=r"a, b\. Got topic=None"):
        open_frames(tmp_path / "two.npz")
    assert next(iter(open_frames(tmp_path / "two.npz", "b"))).image[0, 0, 0] == 1


def test_pictures_of_different_sizes():
    sizes = [frame.image.shape for frame in open_frames([scene(size=32), scene(size=48)])]
    assert sizes == [(32, 32, 3), (48, 48, 3)]


@pytest.mark.parametrize(
    ("wrong", "error", "words"),
    [
        ("/there/is/nothing", InvalidInputError, "There is no file"),
        (3.5, InvalidTypeError, "Got float"),
        (True, InvalidTypeError, "Got bool"),
        ([], InvalidTypeError, "not empty"),
        (np.zeros((2, 4, 4)), InvalidInputError, "float64"),
        (np.zeros((4, 4), np.uint8), InvalidInputError, "Got \\(4, 4\\)"),
        (np.zeros((2, 4, 4, 2), np.uint8), InvalidInputError, "1, 3 or 4"),
    ],
)
def test_what_cannot_be_read_is_refused_in_words(wrong, error, words):
    with pytest.raises(error, match=words):
        open_frames(wrong)


def test_files_of_other_kinds_are_refused(tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(InvalidInputError, match="no pictures"):
        open_frames(tmp_path / "empty")
    for name in ("a.mp4", "a.npy", "a.npz", "a.bag", "a.mcap"):
        (tmp_path / name).write_bytes(b"something else entirely")
        with pytest.raises(InvalidInputError, match="cannot be read"):
            open_frames(tmp_path / name)


def test_a_source_is_its_own(folder):
    source = open_frames(folder)
    assert isinstance(source, FrameSource)
    assert open_frames(source) is source


def test_to_picture_copies_nothing_it_need_not():
    picture = scene()
    assert to_picture(picture) is not None
    assert np.shares_memory(to_picture(picture), picture)


class Recording(FrameSource):
    """Pictures that count how often they are decoded; those that are None are damaged."""

    is_sequence = True

    def __init__(self, pictures):
        self.pictures, self.n_decoded = pictures, 0

    def __str__(self):
        return "a recording"

    def _undecoded(self):
        for picture in self.pictures:
            yield 0.0, corrupt("damaged") if picture is None else lambda p=picture: self._give(p)

    def _give(self, picture):
        self.n_decoded += 1
        return picture


def black(n):
    return np.zeros((n, 4, 4, 3), dtype=np.uint8)


def test_frames_come_in_order_and_damaged_ones_keep_their_place():
    source = Runs([black(2), Recording([None, black(1)[0]]), black(1)])
    with pytest.warns(FrameWarning, match="1 of 5 frames of 3 runs"):
        assert [frame.index for frame in source] == [0, 1, 3, 4]
    assert source.counts_ == [2, 2, 1]
    assert source.groups_.tolist() == [0, 0, 1, 1, 2]
    assert source.n_frames_ == 5


def test_one_run_has_no_groups():
    source = Runs([black(2)])
    assert len(list(source)) == 2
    assert source.groups_ is None
    assert str(source) == "the array"


def test_frames_carry_the_progress_of_their_runs():
    source = Runs([open_frames(black(2), progress=[0, 1]), open_frames(black(1), progress=[0.5])])
    assert [frame.progress for frame in source] == [0, 1, 0.5]
    assert [frame.progress for frame in source.with_progress(None)] == [None] * 3


@pytest.mark.parametrize(("told", "there"), [([0, 1], "3 or more"), ([0, 1, 2, 3], "3")])
@pytest.mark.parametrize("last", [True, False])
def test_progress_of_another_length_is_refused_by_name(told, there, last):
    wrong = Recording(list(black(3))).with_progress(told)
    right = open_frames(black(2), progress=[0, 1])
    source = Runs([right, wrong] if last else [wrong, right])
    with pytest.raises(InvalidInputError, match=f"told for {len(told)} frames of a recording, wh"):
        list(source)
    with pytest.raises(InvalidInputError, match=f"which has {there}"):
        list(wrong)


def test_all_runs_tell_their_progress_or_none_does():
    recording = Recording(list(black(3)))
    with pytest.raises(InvalidInputError, match="a recording tells no progress"):
        Runs([open_frames(black(2), progress=[0, 1]), recording])
    assert recording.n_decoded == 0


@pytest.mark.parametrize("wrong", [[[0.0], [1.0]], [0.0, np.nan], ["high", "low"]])
def test_progress_must_be_numbers(wrong):
    with pytest.raises(InvalidInputError, match="progress must hold"):
        open_frames(black(2), progress=wrong)


def test_progress_is_that_of_the_moment_at_which_the_frame_comes():
    now = iter([0.25, 0.5])
    source = open_frames(black(2), progress=lambda: next(now))
    assert [frame.progress for frame in source] == [0.25, 0.5]


@pytest.mark.slow
def test_a_fit_reads_every_frame_once_and_knows_runs_and_progress():
    pictures, run, progress = runs(n_runs=4, n_frames=8)
    recordings = [Recording(list(pictures[run == r])) for r in range(4)]
    source = Runs([r.with_progress(progress[:8]) for r in recordings])
    settings = {"members": [("knn", PatchKNN())], "false_alarm_rate": 0.3, "random_state": 0}
    fitted = PictureDetector(Blocks(), **settings).fit(source)
    assert [r.n_decoded for r in source.runs] == [8] * 4
    expected = PictureDetector(Blocks(), **settings).fit(pictures, run, progress)
    assert fitted.offset_ == expected.offset_
    assert fitted.context_range_ == [0, 1]
    assert fitted.normal_groups_.tolist() == run.tolist()
    fitted.calibrate(source)
    assert fitted.normal_groups_.tolist() == run.tolist()


def test_what_is_live_has_no_end():
    live = Recording(list(black(3)))
    live.is_live = True
    with pytest.raises(InvalidInputError, match="a recording has no end"):
        Runs([live])
    with pytest.raises(InvalidInputError, match="a recording has no end"):
        PictureDetector(Blocks()).fit(live)
    assert live.n_decoded == 0
