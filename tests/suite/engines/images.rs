//! Images of a real daemon: found, pulled, of another version or platform, and what `auto` makes of
//! them.

use super::{pin, pins_file, settings};
use crate::project::Project;
use remeasure::engine::pins::{Image, Pin};
use remeasure::engine::{EngineChoice, Limits, Server, StartRequest, default_cache, start};
use remeasure::exit_code::Failure;
use std::collections::BTreeMap;
use std::process::{Command, Output};

/// A project on the daemon and the images of these tests, left to `auto`.
fn project(postgres: &str) -> Project {
    let project = Project::new(&format!(
        "---\ntitle: T\npostgres: {{{postgres}}}\n---\n\n```sql experiment one\nSELECT 1 AS n;\n```\n"
    ));
    let pins = std::fs::read_to_string(pins_file()).unwrap();
    project.write("articles/pins.yaml", &pins);
    project
}

fn auto(project: &Project, arguments: &[&str]) -> crate::project::Ran {
    let mut command = project.command(arguments);
    command.env_remove("REMEASURE_ENGINE");
    crate::project::Ran::from(command.output().unwrap())
}

/// The daemon's own client, Docker's or Podman's.
fn client(arguments: &[&str]) -> Output {
    let client = std::env::var("REMEASURE_TEST_CLIENT").unwrap_or_else(|_| "docker".into());
    Command::new(client).args(arguments).output().unwrap()
}

fn by_digest(image: &Image) -> String {
    let (repository, _) = image.name.rsplit_once(':').unwrap();
    format!("{repository}@{}", image.digest)
}

async fn started(pin: &Pin, platform: Option<&str>) -> Result<Server, Failure> {
    let request = StartRequest {
        pin,
        settings: &settings(&[]),
        limits: Limits {
            platform,
            ..Limits::default()
        },
        cache: &default_cache(),
        offline: false,
        progress: &|line| println!("{line}"),
    };
    start(&EngineChoice::Docker, &request).await
}

fn said(result: Result<Server, Failure>) -> String {
    match result {
        Err(Failure::Engine(problem)) => problem.render(false),
        other => panic!("{other:?}"),
    }
}

#[test]
fn docker_is_taken_by_auto_and_the_image_pulled_with_its_progress() {
    let image = pin("16.15").image.unwrap();
    let by_digest = by_digest(&image);
    client(&["image", "rm", "--force", &by_digest]);
    let project = project("version: \"16.15\"");
    let first = auto(&project, &["status"]);
    assert!(first.stdout.contains("engine docker: "), "{first:?}");
    // Podman cannot ask a registry without pulling.
    let said = ["can pull the pinned image", "pulls the pinned image when"];
    assert!(
        said.iter().any(|said| first.stdout.contains(said)),
        "{first:?}"
    );
    // A status pulls nothing.
    assert!(!client(&["image", "inspect", &by_digest]).status.success());
    let offline = auto(&project, &["status", "--offline"]);
    assert!(offline.stdout.contains("engine embedded: "), "{offline:?}");

    let built = auto(&project, &["build"]);
    assert_eq!(built.code, 0, "{}", built.stderr);
    assert!(built.stderr.contains("pulling `"), "{}", built.stderr);
    let listed = client(&["image", "ls", "--digests", "--no-trunc"]);
    let listed = String::from_utf8(listed.stdout).unwrap();
    let line = listed.lines().find(|line| line.contains(&image.digest));
    // It has no tag, and works.
    assert!(line.is_some_and(|line| line.contains("<none>")), "{listed}");
    let server = project.record().environment.server;
    assert_eq!(server.engine, "docker");
    assert!(
        server
            .engine_reason
            .ends_with(" answers and has the pinned image")
    );
    assert_eq!(server.digest.as_ref(), Some(&image.digest));
    let digest = |name: &str| {
        server
            .container
            .get(name)
            .is_some_and(|it| it.starts_with("sha256:"))
    };
    assert!(
        digest("image") && (digest("config") || digest("manifest")),
        "{server:?}"
    );

    // Present, it is taken without a registry, and what it measured is kept.
    let again = auto(&project, &["build", "--offline"]);
    assert_eq!(again.code, 0, "{}", again.stderr);
    assert!(again.stderr.contains("nothing changed"), "{}", again.stderr);
    let status = auto(&project, &["status"]);
    assert!(status.stdout.contains("one: fresh"), "{}", status.stdout);
}

#[test]
fn docker_and_a_record_of_embedded_stand_beside_one_another() {
    let project = project("version: \"16.15\"");
    assert_eq!(project.run(&["build"]).code, 0);
    assert_eq!(project.run(&["accept"]).code, 0);
    let recorded = auto(&project, &["check", "--recorded"]);
    assert_eq!(recorded.code, 0, "{}", recorded.stderr);
    let status = auto(&project, &["status"]);
    assert_eq!(status.code, 0);
    assert!(
        status
            .stdout
            .contains("one: would run: server changed from `16.15 embedded` to `16.15 docker`"),
        "{}",
        status.stdout
    );
    assert!(
        status.stdout.contains(
            "record: current, profile full, 0 claims, host this machine, engine embedded"
        ),
        "{}",
        status.stdout
    );
    let built = auto(&project, &["build"]);
    assert_eq!(built.code, 0);
    assert!(
        built
            .stderr
            .contains("the accepted record was measured on engine embedded, this on docker"),
        "{}",
        built.stderr
    );
    // Nothing of the other engine is lost.
    let back = project.run(&["build"]);
    assert!(back.stderr.contains("nothing changed"), "{}", back.stderr);
}

#[tokio::test]
async fn docker_refuses_an_image_of_another_version() {
    let mut pin = pin("16.15");
    pin.version = "16.14".into();
    let said = said(started(&pin, None).await);
    for part in [
        "the image that is pinned for Postgres 16.14 holds Postgres 16.15",
        &pin.image.as_ref().unwrap().digest,
        "pins.yaml",
    ] {
        assert!(said.contains(part), "{said}");
    }
}

#[tokio::test]
async fn docker_tells_of_a_registry_that_is_down() {
    let mut pin = pin("16.15");
    let image = pin.image.as_mut().unwrap();
    image.name = "127.0.0.1:9/postgres:16.15".into();
    image.digest = format!("sha256:{}", "7".repeat(64));
    let said = said(started(&pin, None).await);
    for part in [
        "cannot be pulled",
        "refused",
        "is the registry within reach?",
    ] {
        assert!(said.contains(part), "{said}");
    }
}

/// `REMEASURE_TEST_FOREIGN_IMAGE`: the name and digest of an image of 16.15 that says of itself to be
/// for another architecture, and runs.
#[tokio::test]
async fn docker_emulates_a_platform_only_where_it_is_asked_for() {
    let Ok(foreign) = std::env::var("REMEASURE_TEST_FOREIGN_IMAGE") else {
        println!("not tried: REMEASURE_TEST_FOREIGN_IMAGE names no image");
        return;
    };
    let (own, other) = match std::env::consts::ARCH {
        "x86_64" => ("linux/amd64", "linux/arm64"),
        _ => ("linux/arm64", "linux/amd64"),
    };
    let (name, digest) = foreign.split_once('@').unwrap();
    let image = Image {
        name: name.into(),
        digest: digest.into(),
    };
    let pin = Pin {
        version: "16.15".into(),
        image: Some(image),
        archives: BTreeMap::new(),
    };
    let said = said(started(&pin, None).await);
    let refused = format!("is for {other}, not for {own}");
    assert!(said.contains(&refused), "{said}");
    let server = started(&pin, Some(other)).await.unwrap();
    let container = server.environment().container;
    assert_eq!(container["platform"], other);
    assert_eq!(container["emulated_on"], own);
    server.stop().await.unwrap();

    let project = project(&format!("version: \"16.15\", platform: {other}"));
    project.write(
        "articles/pins.yaml",
        &format!(
            "versions:\n  \"16.15\":\n    image: {{name: \"{name}\", digest: \"{digest}\"}}\n"
        ),
    );
    let built = auto(&project, &["build"]);
    assert_eq!(built.code, 0, "{}", built.stderr);
    let record = project.record();
    let doubts = &record.experiments["one"].doubts;
    assert!(
        doubts.iter().any(|doubt| doubt.kind == "emulated-platform"),
        "{doubts:?}"
    );
    let page = project.read("out/a/index.html");
    assert!(page.contains("platform is emulated"), "the page says so");
}
