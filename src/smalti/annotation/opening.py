"""From an input, or from a project that is there, to a project that can be answered about."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from pathlib import Path

from smalti.agents.matcher import Matcher
from smalti.building.build import Location, beginning
from smalti.building.build_settings import BuildSettings
from smalti.building.preparation import Preparation, prepare
from smalti.errors import UsageError
from smalti.frames.source_settings import SourceSettings
from smalti.progress import Progress
from smalti.project.answer_store import FILE_NAME
from smalti.project.project import Project
from smalti.project.project_lock import ProjectLock

WHAT = "smalti annotate"

LEAST_PART = 3
"""A person is not asked about fewer frames that nothing joins: most show nothing, and each costs a minute."""


@dataclass(frozen=True, slots=True, eq=False)
class Opened:
    """A project with everything done that comes before the first question."""

    project: Project
    settings: BuildSettings
    matcher: Matcher | None
    preparation: Preparation
    source: str | Path | None = None  # where the frames are now, if they were moved

    def again(self) -> Project:
        """Open the same project once more: files of its own, for another thread."""
        return Project.open(self.project.folder, source=self.source)

    def lay_again(self, project: Project, progress: Progress) -> Preparation:
        """Lay the groundwork anew, from what is kept; `project` may be this one or another opened of the same."""
        return prepare(project, project.source, self.settings, self.matcher, progress, LEAST_PART)


def is_project(location: Location) -> bool:
    """Tell whether an input is a project's folder."""
    return isinstance(location, str | Path) and (Path(location) / FILE_NAME).is_file()


def refuse_choice_of_frames(location: Location, settings: BuildSettings) -> None:
    """Refuse settings that a project has settled already, instead of ignoring them."""
    usual = BuildSettings()
    chosen = {**asdict(settings.source), "mask": settings.mask, "seed": settings.seed}
    for name, default in {**asdict(usual.source), "mask": usual.mask, "seed": usual.seed}.items():
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
    """Open or begin a project, and lay its groundwork; `source` is where its frames are now, if they were moved."""
    if not is_project(location):
        if source is not None:
            raise UsageError("--source is for a project whose frames were moved; name the project's folder first")
        with beginning(location, folder, settings, matcher, WHAT) as project:
            return _open(project, settings, matcher, progress)
    if folder is not None:
        raise UsageError(f"{location}: is a project already, give no other folder for it")
    refuse_choice_of_frames(location, settings)
    project = Project.open(str(location), source=source)
    try:
        project.lock = ProjectLock(project.folder, WHAT).acquire()
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
    """Return the settings with what the project's frames, mask and words were made by."""
    binding = project.store.fact("binding")
    return replace(
        settings, source=SourceSettings(**binding["source"]), mask=binding["mask"], seed=int(binding["seed"])
    )
