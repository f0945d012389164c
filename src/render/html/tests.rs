//! What a page must be: complete, escaped, self-contained, the same every time.

use super::super::sample::{Sample, TEXT};
use super::super::{fill, render};

fn page() -> String {
    Sample::new().file("index.html")
}

#[test]
fn dump() {
    if let Some(dir) = std::env::var_os("RENDER_DUMP") {
        for file in Sample::new().render() {
            let path = std::path::Path::new(&dir).join(file.path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, file.content).unwrap();
        }
    }
}
