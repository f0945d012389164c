mod generated;
fn main() {
    let root = std::env::args().nth(1).unwrap();
    let mut size = generated::Size::LARGE;
    if let Some(rows) = std::env::args().nth(2) {
        size = size.times(rows.parse().unwrap());
    }
    generated::write_project(std::path::Path::new(&root), size);
}
