//! Takes ECharts out of the charming crate's source, checks that it is the file that is known,
//! and compiles it to QuickJS bytecode: a chart is then ready to draw in 11 ms instead of 110.
//!
//! The bytecode belongs to the exact QuickJS that reads it, so it is made anew in every build and
//! never kept in the repository.

use rquickjs::{Context, Module, Runtime, WriteOptions, WriteOptionsEndianness};
use sha2::{Digest, Sha256};
use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// `dist/echarts.min.js` of npm's `echarts@5.5.1`, which charming 0.6 ships unchanged.
const ECHARTS: &str = "src/asset/echarts-5.5.1.min.js";
const ECHARTS_SHA256: &str = "e84270bd0cd5bdf60fefc26d00c2a391cb2e81f4d26a7a9ee16185a54773a3cf";
/// Where the file lies, for builds in which `cargo metadata` cannot tell.
const ECHARTS_VARIABLE: &str = "REMEASURE_ECHARTS";
/// What a drawing depends on besides ECharts.
const DRAWING: &str = "src/chart";

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=Cargo.lock");
    println!("cargo:rerun-if-changed={DRAWING}");
    println!("cargo:rerun-if-env-changed={ECHARTS_VARIABLE}");

    let script = checked(&echarts_file()?)?;
    let bytecode = PathBuf::from(env::var("OUT_DIR")?).join("echarts.bytecode");
    fs::write(&bytecode, compile(&script)?)?;
    println!("cargo:rustc-env=REMEASURE_DRAWING={}", drawing_version()?);
    Ok(())
}

fn echarts_file() -> Result<PathBuf, Box<dyn Error>> {
    match env::var_os(ECHARTS_VARIABLE) {
        Some(file) => Ok(file.into()),
        None => Ok(charming_directory()?.join(ECHARTS)),
    }
}

/// Cargo tells a build script nothing about the folders of its package's dependencies; `metadata`
/// does, for registry, vendored and patched sources alike. `--filter-platform` because offline only
/// the packages of the platform that is built for are sure to be there.
fn charming_directory() -> Result<PathBuf, Box<dyn Error>> {
    let manifest = Path::new(&env::var("CARGO_MANIFEST_DIR")?).join("Cargo.toml");
    let output = Command::new(env::var("CARGO")?)
        .args(["metadata", "--format-version=1", "--locked", "--offline"])
        .args(["--filter-platform", &env::var("TARGET")?])
        .arg("--manifest-path")
        .arg(manifest)
        .output()?;
    if !output.status.success() {
        let message = String::from_utf8_lossy(&output.stderr);
        return Err(format!(
            "`cargo metadata` failed; {ECHARTS_VARIABLE} may name the file instead: {message}"
        )
        .into());
    }
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    let manifest = metadata["packages"]
        .as_array()
        .into_iter()
        .flatten()
        .find(|package| package["name"] == "charming")
        .and_then(|package| package["manifest_path"].as_str())
        .ok_or("`cargo metadata` knows no package `charming`")?;
    Ok(Path::new(manifest).with_file_name(""))
}

fn checked(file: &Path) -> Result<Vec<u8>, Box<dyn Error>> {
    let script = fs::read(file).map_err(|error| format!("cannot read {file:?}: {error}"))?;
    let found = hex(&Sha256::digest(&script));
    if found != ECHARTS_SHA256 {
        return Err(format!(
            "{file:?} is not the ECharts that is known here: \
             its sha256 is {found} instead of {ECHARTS_SHA256}"
        )
        .into());
    }
    Ok(script)
}

/// The module is written before it is evaluated: afterwards QuickJS cannot write it any more.
fn compile(script: &[u8]) -> Result<Vec<u8>, Box<dyn Error>> {
    let endianness = match env::var("CARGO_CFG_TARGET_ENDIAN")?.as_str() {
        "big" => WriteOptionsEndianness::Big,
        _ => WriteOptionsEndianness::Little,
    };
    let context = Context::full(&Runtime::new()?)?;
    Ok(context.with(|js| {
        Module::declare(js, "echarts", script)?.write(WriteOptions {
            endianness,
            strip_source: true,
            strip_debug: true,
            ..WriteOptions::default()
        })
    })?)
}

/// A drawing kept from an earlier build is good for as long as nothing that draws it changed.
fn drawing_version() -> Result<String, Box<dyn Error>> {
    let mut files = fs::read_dir(DRAWING)?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<Vec<_>, _>>()?;
    files.sort();
    let mut hash = Sha256::new_with_prefix(ECHARTS_SHA256);
    for file in files {
        hash.update(Sha256::digest(fs::read(file)?));
    }
    Ok(hex(&hash.finalize()))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
