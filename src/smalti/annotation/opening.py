"""Open an input or an existing project, and prepare it for questions."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from pathlib import Path

from smalti.agents.matcher import Matcher
from smalti.building.build import Location, beginning
from smalti.building.build_settings import BuildSettings
from smalti.building.preparation import Preparation, prepare
from smalti.errors import ProjectError, UsageError
from smalti.interchange.regular_files import kind_of
from smalti.progress import Progress
from smalti.project.answer_store import FILE_NAME
from smalti.project.project import Project
from smalti.project.project_lock import ProjectLock, make_folder

WHAT = "smalti annotate"

LEAST_PART = 3
"""Parts of fewer frames that nothing joins are not asked about: most show nothing, and each costs a minute."""


@dataclass(frozen=True, slots=True, eq=False)
class Opened:
    """A project that is prepared up to the first question."""

    project: Project
    settings: BuildSettings
    matcher: Matcher | None
    preparation: Preparation
    source: str | Path | None = None  # current location of the frames, if they were moved

    def again(self) -> Project:
        """Open the same project once more, with its own file handles, for another thread."""
        return Project.open(self.project.folder, source=self.source, to_write=True)

    def prepare_again(self, project: Project, progress: Progress) -> Preparation:
        """Prepare again from stored results. `project` may be this one or another handle of the same project."""
        return prepare(project, project.source, self.settings, self.matcher, progress, LEAST_PART)


def is_project(location: Location) -> bool:
    """Tell whether an input is a project's folder."""
    if not isinstance(location, str | Path) or kind_of(Path(location)) != "folder":
        return False
    return kind_of(Path(location) / FILE_NAME, ProjectError) == "file"


def refuse_choice_of_frames(location: Location, settings: BuildSettings) -> None:
    """Refuse settings that a project has settled already, instead of ignoring them."""
    chosen, by_default = (
        {**asdict(one.source), "mask": one.mask, "keyframes": one.keyframes, "seed": one.seed}
        for one in (settings, BuildSettings())
    )
    for name, default in by_default.items():
        if is_project(location) and chosen[name] != default:
            option = name.replace("_", "-")
            raise UsageError(f"{option}: {location} is a project, its frames are chosen; leave {option} out")


def open_project(
    location: Location,
    folder: str | Path | None,
    settings: BuildSettings,
    *,
    source: str | Path | None = None,
    matcher: Matcher | None = None,
    progress: Progress,
) -> Opened:
    """Open or begin a project, and prepare it. `source` is the current location of its frames, if they were moved."""
    if not is_project(location):
        if source is not None:
            raise UsageError("--source is for projects whose frames were moved; give the project folder as input")
        with beginning(location, folder, settings, matcher, WHAT) as project:
            return _open(project, settings, matcher, progress)
    if folder is not None:
        raise UsageError(f"{location}: is already a project; leave out the other folder")
    refuse_choice_of_frames(location, settings)
    make_folder(Path(str(location)))
    lock = ProjectLock(Path(str(location)), WHAT).acquire()
    try:
        project = Project.open(str(location), source=source, to_write=True)
    except BaseException:
        lock.release()
        raise
    try:
        project.lock = lock
        return _open(project, _bound(project, settings), matcher, progress, source)
    except BaseException:
        project.close()
        raise


def _open(
    project: Project,
    settings: BuildSettings,
    matcher: Matcher | None,
    progress: Progress,
    source: str | Path | None = None,
) -> Opened:
    preparation = prepare(project, project.source, settings, matcher, progress, LEAST_PART)
    return Opened(project, settings, matcher, preparation, source)


def _bound(project: Project, settings: BuildSettings) -> BuildSettings:
    """Return the settings with those that the project's frames, mask and visual words were made with."""
    binding = project.source_facts.binding
    return replace(settings, source=binding.source, mask=binding.mask, seed=binding.seed, keyframes=binding.keyframes)
