//! What stands between a pin and a running server: the hash and the cache.

use super::{pin, start};
use remeasure::engine::{self, EngineChoice, StartRequest};
use remeasure::exit_code::Failure;
use std::collections::BTreeMap;
#[tokio::test]
async fn once_fetched_a_server_starts_offline() {
    let cache = engine::default_cache();
    start(&EngineChoice::Embedded, "16.15")
        .await
        .stop()
        .await
        .unwrap();
    let server = engine::start(
        &EngineChoice::Embedded,
        &StartRequest {
            pin: &pin("16.15"),
            settings: &BTreeMap::new(),
            limits: remeasure::engine::Limits::default(),
            cache: &cache,
            offline: true,
            progress: &|line| panic!("{line}"),
        },
    )
    .await
    .unwrap();
    let environment = server.environment();
    assert_eq!(environment.engine, "embedded");
    assert_eq!(environment.engine_reason, "asked for");
    server.stop().await.unwrap();
}

#[tokio::test]
async fn an_archive_with_another_hash_is_refused_and_not_kept() {
    let cache = tempfile::tempdir().unwrap();
    let mut pin = pin("16.15");
    for archive in pin.archives.values_mut() {
        archive.archive = "0".repeat(64);
    }
    let started = engine::start(
        &EngineChoice::Embedded,
        &StartRequest {
            pin: &pin,
            settings: &BTreeMap::new(),
            limits: remeasure::engine::Limits::default(),
            cache: cache.path(),
            offline: false,
            progress: &|line| println!("{line}"),
        },
    )
    .await;
    match started {
        Err(Failure::Engine(diagnostic)) => {
            let text = diagnostic.render(false);
            assert!(text.contains("expected sha256 0000"), "{text}");
        }
        other => panic!("{other:?}"),
    }
    for folder in ["postgres", "runs"] {
        let left: Vec<_> = std::fs::read_dir(cache.path().join(folder))
            .unwrap()
            .collect();
        assert!(left.is_empty(), "{left:?}");
    }
}
