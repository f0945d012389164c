//! Which engine a command takes, and what it says where one cannot be had: with daemons that answer
//! as each test has it, and none.

use super::daemon::{Answer, Daemon, image, offer, ok, refusal, version};
use crate::project::{Project, Ran};
use std::os::unix::net::UnixListener;
use std::process::Command;

const ARTICLE: &str = "
```sql experiment one
SELECT 1 AS n;
```
";

/// A project, and the place of a socket that commands are told to look at.
struct Place {
    project: Project,
}

impl Place {
    fn new() -> Self {
        Self {
            project: Project::new(ARTICLE),
        }
    }

    /// A daemon at the place's socket.
    fn daemon(&self, answers: impl Fn(&str) -> Option<Answer> + Send + Sync + 'static) -> Daemon {
        Daemon::at(&self.project.path("d.sock"), answers)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let socket = self.project.path("d.sock");
        let mut command = self.project.command(arguments);
        command
            .env_remove("REMEASURE_ENGINE")
            .env_remove("REMEASURE_POSTGRES")
            .env_remove("CONTAINER_HOST")
            .env_remove("DOCKER_CONTEXT")
            // Long places of tests are no matter of sockets.
            .env("DOCKER_CONFIG", self.project.path("docker"))
            .env("DOCKER_HOST", format!("unix://{}", socket.display()));
        command
    }

    fn run(&self, arguments: &[&str]) -> Ran {
        Ran::from(self.command(arguments).output().unwrap())
    }

    /// The line of `status` about the engine, and what was said beside it.
    fn status(&self, arguments: &[&str]) -> (String, String) {
        let ran = self.run(&[&["status"], arguments].concat());
        // There is no record.
        assert_eq!(ran.code, 5, "{}\n{}", ran.stdout, ran.stderr);
        let line = ran.stdout.lines().next().unwrap_or_default();
        let engine = line.split(" · ").last().unwrap().to_owned();
        (engine, ran.stderr)
    }

    /// What is said where the engine cannot be had; nothing is measured.
    fn refused(&self, arguments: &[&str]) -> String {
        let ran = self.run(&[&["build"], arguments].concat());
        assert_eq!(ran.code, 4, "{}\n{}", ran.stdout, ran.stderr);
        assert!(!self.project.path("out").exists());
        ran.stderr
    }
}

fn is(request: &str, what: &str) -> bool {
    request.starts_with(what)
}

/// A daemon of today whose images and registry are the test's.
fn docker(
    images: fn() -> Option<Answer>,
    registry: fn() -> Option<Answer>,
    pull: fn() -> Option<Answer>,
) -> impl Fn(&str) -> Option<Answer> + Send + Sync + 'static {
    move |request| match request {
        "GET /version" => version("1.51", "1.24"),
        request if is(request, "GET /images/") => images(),
        request if is(request, "GET /distribution/") => registry(),
        request if is(request, "POST /images/create") => pull(),
        request if is(request, "GET /containers/json") => ok("[]"),
        request if is(request, "GET /volumes") => ok("{\"Volumes\":[],\"Warnings\":[]}"),
        "GET /info" => of_this_kernel(),
        other => refusal(500, &format!("not expected: {other}")),
    }
}

/// A daemon of this machine, with which folders are shared.
fn of_this_kernel() -> Option<Answer> {
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    ok(format!("{{\"KernelVersion\":\"{}\"}}", kernel.trim()))
}

fn none() -> Option<Answer> {
    refusal(404, "No such image")
}

fn unexpected() -> Option<Answer> {
    refusal(500, "nobody should have asked")
}

#[test]
fn auto_takes_docker_where_a_daemon_has_the_image() {
    let place = Place::new();
    let daemon = place.daemon(docker(|| image("amd64"), unexpected, unexpected));
    let (engine, said) = place.status(&[]);
    assert_eq!(
        engine,
        "engine docker: Docker answers and has the pinned image"
    );
    assert_eq!(said, "");
    // A registry is not asked, and each version once, however many articles have it.
    place.project.write(
        "articles/b/article.md",
        &place.project.read("articles/a/article.md"),
    );
    let before = daemon.asked().len();
    place.run(&["status"]);
    let asked = daemon.asked();
    let looks = |asked: &[String]| asked.iter().filter(|one| is(one, "GET /images/")).count();
    assert_eq!(looks(&asked[before..]), 1, "{asked:?}");
    // What is named is not asked for; of docker's daemon only which machine it is on.
    place.run(&["status", "--engine", "embedded"]);
    place.run(&["status", "--engine", "docker"]);
    assert_eq!(looks(&daemon.asked()[before..]), 1);
}

#[test]
fn a_missing_image_is_looked_for_at_its_registry_unless_offline() {
    let place = Place::new();
    let daemon = place.daemon(docker(none, || offer("amd64"), unexpected));
    let (engine, said) = place.status(&[]);
    assert_eq!(
        engine,
        "engine docker: Docker answers and can pull the pinned image"
    );
    assert_eq!(said, "");
    let before = daemon.asked().len();
    let (engine, said) = place.status(&["--offline"]);
    assert_eq!(
        engine,
        "engine embedded: Docker answers, but the pinned image is not here, and `--offline` \
         fetches nothing"
    );
    assert_eq!(said, "");
    assert!(
        !daemon.asked()[before..]
            .iter()
            .any(|one| is(one, "GET /distribution/"))
    );
    // With docker asked for it is an error, and what to do stands there.
    let said = place.refused(&["--engine", "docker", "--offline"]);
    assert!(said.contains("is not here"), "{said}");
    assert!(said.contains("docker pull"), "{said}");
}

#[test]
fn an_image_that_cannot_be_pulled_leaves_auto_with_embedded() {
    const UNKNOWN: &str = "manifest for postgres@sha256:bb not found: manifest unknown";
    const REFUSED: &str =
        "Get \"https://r/v2/\": dial tcp 127.0.0.1:1: connect: connection refused";
    for (registry, pull, why, words, hint) in [
        (
            (|| refusal(404, UNKNOWN)) as fn() -> Option<Answer>,
            (|| refusal(404, UNKNOWN)) as fn() -> Option<Answer>,
            "manifest unknown",
            "the registry has no such image",
            "right in pins.yaml",
        ),
        (
            || refusal(500, REFUSED),
            || refusal(500, REFUSED),
            "connection refused",
            "the registry is out of reach",
            "is the registry within reach?",
        ),
        // A pull tells its failure in the middle of its progress.
        (
            || refusal(500, REFUSED),
            || {
                ok("{\"status\":\"Pulling fs layer\",\"id\":\"a\"}\r\n\
                    {\"errorDetail\":{\"message\":\"write /x: no space left on device\"},\
                     \"error\":\"write /x: no space left on device\"}\r\n")
            },
            "connection refused",
            "the registry is out of reach",
            "make room",
        ),
        (
            || offer("arm64"),
            || ok("{\"status\":\"Pulling fs layer\",\"id\":\"a\"}\r\n"),
            "it is not made for linux/amd64",
            "the registry has no such image",
            "does not find it",
        ),
    ] {
        let place = Place::new();
        let _daemon = place.daemon(docker(none, registry, pull));
        let (engine, said) = place.status(&[]);
        // The reason goes into the record; what names hosts of this network is told, and no more.
        assert_eq!(
            engine,
            format!(
                "engine embedded: Docker answers, but the pinned image is not here, and {words}"
            )
        );
        assert!(
            said.starts_with("the pinned image is not here, and cannot be pulled: "),
            "{said}"
        );
        assert!(said.contains(why), "{said}");
        assert_eq!(place.status(&["--quiet"]).1, "");
        let said = place.refused(&["--engine", "docker"]);
        assert!(said.contains("error: "), "{said}");
        assert!(said.contains(hint), "{said}");
    }
}

#[test]
fn a_pull_that_fails_after_all_is_told_and_embedded_measures() {
    let place = Place::new();
    let fails = || {
        ok("{\"error\":\"unexpected EOF\",\"errorDetail\":{\"message\":\"unexpected EOF\"}}\r\n")
    };
    // As Podman's, which cannot ask a registry without pulling.
    let _daemon = place.daemon(docker(none, || refusal(404, "Not Found"), fails));
    let ran = place.run(&["build"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stderr.contains("warning: "), "{}", ran.stderr);
    assert!(ran.stderr.contains("unexpected EOF"), "{}", ran.stderr);
    assert!(
        ran.stderr
            .contains("engine embedded: Docker answers, but does not pull the pinned image"),
        "{}",
        ran.stderr
    );
    let server = place.project.record().environment.server;
    assert_eq!(server.engine, "embedded");
    assert!(
        server
            .engine_reason
            .ends_with("the registry is out of reach"),
        "{server:?}"
    );
    // What embedded has measured is found again.
    let again = place.run(&["build"]);
    assert_eq!(again.code, 0);
    assert!(!again.stderr.contains("runs: "), "{}", again.stderr);
}

#[test]
fn an_image_of_another_platform_is_refused() {
    let place = Place::new();
    let _daemon = place.daemon(docker(
        || image("arm64"),
        || offer("arm64"),
        || ok("{\"status\":\"Image is up to date\"}\r\n"),
    ));
    let (engine, _) = place.status(&[]);
    assert_eq!(
        engine,
        "engine embedded: Docker answers, but the image that is here is for linux/arm64, and the \
         registry has no such image"
    );
    for arguments in [
        &["--engine", "docker"][..],
        &["--engine", "docker", "--offline"],
    ] {
        let said = place.refused(arguments);
        assert!(
            said.contains("is for linux/arm64, not for linux/amd64"),
            "{said}"
        );
        assert!(said.contains("platform: linux/arm64"), "{said}");
    }
    place.project.edit(
        "{version: \"16.15\"}",
        "{version: \"16.15\", platform: linux/arm64}",
    );
    let (engine, _) = place.status(&[]);
    assert_eq!(
        engine,
        "engine docker: Docker answers and has the pinned image"
    );
}

#[test]
fn an_image_that_is_laid_out_otherwise_is_refused() {
    let place = Place::new();
    let other =
        || ok("{\"Id\":\"sha256:1\",\"Os\":\"linux\",\"Architecture\":\"amd64\",\"Config\":{}}");
    let _daemon = place.daemon(docker(other, unexpected, unexpected));
    let (engine, _) = place.status(&[]);
    assert!(
        engine.starts_with("engine embedded: Docker answers, but the image `"),
        "{engine}"
    );
    let said = place.refused(&["--engine", "docker"]);
    for part in [
        "is not laid out as the official image of Postgres",
        "PGDATA",
        "hint: ",
    ] {
        assert!(said.contains(part), "{said}");
    }
}

#[test]
fn versions_of_the_api_are_agreed_on() {
    for (newest, oldest, works) in [
        ("1.41", "1.12", true),
        ("1.51", "1.44", true),
        ("1.99", "1.53", true),
        ("1.40", "1.12", false),
        ("1.99", "1.54", false),
        ("2.0", "2.0", false),
        ("new", "", false),
    ] {
        let place = Place::new();
        let _daemon = place.daemon(move |request| match request {
            "GET /version" => version(newest, oldest),
            "GET /info" => of_this_kernel(),
            _ => image("amd64"),
        });
        let (engine, said) = place.status(&[]);
        if works {
            assert_eq!(said, "", "{newest} {oldest}");
            assert!(engine.starts_with("engine docker"), "{engine}");
            continue;
        }
        assert_eq!(
            engine,
            "engine embedded: the container daemon that DOCKER_HOST names does not answer"
        );
        let refused = place.refused(&["--engine", "docker"]);
        for said in [said, refused] {
            assert!(
                said.contains("version of the API") || said.contains("needs an update"),
                "{newest} {oldest}: {said}"
            );
        }
    }
}

type Make = fn(&Place) -> Option<Daemon>;

#[test]
fn a_daemon_that_is_asked_for_and_does_not_answer_is_told() {
    let faults: [(Make, &str); 4] = [
        (|_| None, "there is no such socket"),
        (
            |place| {
                drop(UnixListener::bind(place.project.path("d.sock")).unwrap());
                None
            },
            "nobody listens at this socket",
        ),
        (
            |place| {
                place.project.write("d.sock", "no socket");
                None
            },
            "nobody listens at this socket",
        ),
        (
            |place| Some(place.daemon(|_| ok("<html>hello</html>"))),
            "does not answer as a container daemon",
        ),
    ];
    for (make, why) in faults {
        let place = does_not_answer(make, why);
        let doctor = place.run(&["doctor"]).stdout;
        assert!(doctor.contains(why), "{doctor}");
    }
}

#[test]
fn a_daemon_that_never_answers_is_not_waited_for_forever() {
    does_not_answer(
        |place| Some(place.daemon(|_| None)),
        "it does not answer within 10 s",
    );
}

fn does_not_answer(make: Make, why: &str) -> Place {
    let place = Place::new();
    let _daemon = make(&place);
    let (engine, said) = place.status(&[]);
    assert_eq!(
        engine,
        "engine embedded: the container daemon that DOCKER_HOST names does not answer"
    );
    assert!(said.contains("warning: the container daemon"), "{said}");
    assert!(said.contains(why), "{said}");
    // A failure where docker is asked for, and nobody else is asked.
    let said = place.refused(&["--engine", "docker"]);
    assert!(said.contains("no container daemon answers"), "{said}");
    assert!(said.contains(why), "{said}");
    assert!(said.contains("hint: "), "{said}");
    place
}

#[test]
fn a_socket_that_may_not_be_used_names_the_group() {
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::process::CommandExt;
    let place = Place::new();
    let _daemon = place.daemon(|_| version("1.51", "1.24"));
    let mode = |name: &str, mode: u32| {
        let path = place.project.path(name);
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    mode(".", 0o755);
    mode("d.sock", 0o600);
    let mut command = place.command(&["status"]);
    // SAFETY: takes nothing and cannot fail.
    if unsafe { libc::geteuid() } == 0 {
        // Root may use every socket.
        command.uid(65534).gid(65534);
    } else {
        mode("d.sock", 0o000);
    }
    let ran = match command.output() {
        Ok(output) => Ran::from(output),
        Err(error) => {
            println!("not tried: nobody may not run the program here: {error}");
            return;
        }
    };
    for said in ["this user may not use the socket", "usermod -aG docker"] {
        assert!(ran.stderr.contains(said), "{}", ran.stderr);
    }
}

#[test]
fn where_neither_engine_can_be_had_both_reasons_are_told() {
    let place = Place::new();
    place.project.write(
        "articles/pins.yaml",
        "versions:\n  \"16.15\":\n    archives: {}\n",
    );
    let said = place.refused(&[]);
    for part in [
        "no engine can be had for Postgres 16.15",
        "docker: no image of Postgres 16.15 is pinned",
        "embedded: Postgres 16.15 is not pinned for",
        "hint: ",
    ] {
        assert!(said.contains(part), "{said}");
    }
    // One that fails only as it starts is told with what was passed over, too.
    let place = Place::new();
    let others: String = crate::engines::pins_text()
        .lines()
        .map(|line| match line.split_once("archive: ") {
            Some((indent, _)) => format!("{indent}archive: {}\n", "0".repeat(64)),
            None => format!("{line}\n"),
        })
        .collect();
    place.project.write("articles/pins.yaml", &others);
    let said = place.refused(&["--offline"]);
    for part in [
        "not in the cache",
        "the docker engine is not used: the container daemon that DOCKER_HOST names",
    ] {
        assert!(said.contains(part), "{said}");
    }
}

#[test]
fn the_machines_own_choice_and_what_an_article_pins_go_before_a_question() {
    let place = Place::new();
    let daemon = place.daemon(docker(|| image("amd64"), unexpected, unexpected));
    let status = |name: &str, value: &str| {
        let mut command = place.command(&["status"]);
        let ran = Ran::from(command.env(name, value).output().unwrap());
        ran.stdout.lines().next().unwrap().to_owned()
    };
    assert!(status("REMEASURE_ENGINE", "embedded").ends_with("engine embedded: asked for"));
    assert!(
        status("REMEASURE_POSTGRES", "/opt/postgres")
            .ends_with("engine embedded: REMEASURE_POSTGRES names its programs")
    );
    // But for which machine it runs on.
    let asked = daemon.asked();
    let questions = ["GET /version", "GET /info"];
    assert!(
        asked.iter().all(|one| questions.contains(&one.as_str())),
        "{asked:?}"
    );
    assert!(status("REMEASURE_ENGINE", "").contains("engine docker: Docker answers"));
    let pins = crate::engines::pins_text();
    let (_, archives) = pins.split_once("    archives:").unwrap();
    let no_image = format!("versions:\n  \"16.15\":\n    archives:{archives}");
    place.project.write("articles/pins.yaml", &no_image);
    let before = daemon.asked();
    let (engine, _) = place.status(&[]);
    assert_eq!(
        engine,
        "engine embedded: no image of Postgres 16.15 is pinned"
    );
    assert_eq!(daemon.asked(), before);
}

#[test]
fn a_docker_context_that_is_asked_for_is_the_only_place() {
    let place = Place::new();
    let mut command = place.command(&["status"]);
    command
        .env_remove("DOCKER_HOST")
        .env("DOCKER_CONTEXT", "work");
    let ran = Ran::from(command.output().unwrap());
    for said in [
        "warning: the container daemon that DOCKER_CONTEXT `work` names does not answer",
        "there is no such docker context",
        "unset DOCKER_CONTEXT",
    ] {
        assert!(ran.stderr.contains(said), "{}", ran.stderr);
    }
}

#[test]
fn doctor_tells_every_place_every_image_and_what_auto_takes() {
    let place = Place::new();
    let _daemon = place.daemon(docker(none, || offer("amd64"), unexpected));
    let said = place.run(&["doctor"]).stdout;
    for line in [
        "(DOCKER_HOST): Docker 99.9, API 1.51, linux/amd64",
        "no   image of Postgres 16.15: `postgres@sha256:",
        "ok   `--engine auto` for Postgres 18.6: docker: Docker answers and can pull the pinned image",
    ] {
        assert!(said.contains(line), "{said}");
    }
}
