//! Runs ECharts: an option as JSON becomes SVG. Every drawing has a JavaScript runtime of its own,
//! because ECharts counts its ids on from one drawing to the next: so the same option always comes
//! to the same bytes. What the script may use of memory, stack and time is limited; time is counted
//! in steps, not seconds, so that a slow machine draws what a fast one does.

use rquickjs::context::EvalOptions;
use rquickjs::{CatchResultExt, Context, Ctx, Function, Module, Runtime};

static ECHARTS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/echarts.bytecode"));
const ENVIRONMENT: &str = include_str!("environment.js");
const DRAW: &str = include_str!("draw.js");

const MEMORY_LIMIT: usize = 256 << 20;
/// Well below the 2 MiB that a thread has.
const STACK_LIMIT: usize = 768 << 10;
/// QuickJS asks once in 10,000 jumps and calls. A chart of ten thousand points takes some
/// hundreds of these; this many are a few seconds.
const STEP_LIMIT: u32 = 20_000;

/// Draws one request, `{width, height, option}` as draw.js takes it. The error is JavaScript's.
pub fn svg(request: &str) -> Result<String, String> {
    within_limits(STEP_LIMIT, |js| run(js, request))
}

/// Does some work in a runtime of its own.
fn within_limits<T>(
    step_limit: u32,
    work: impl FnOnce(&Ctx) -> rquickjs::Result<T>,
) -> Result<T, String> {
    let runtime = Runtime::new().map_err(|error| error.to_string())?;
    runtime.set_memory_limit(MEMORY_LIMIT);
    runtime.set_max_stack_size(STACK_LIMIT);
    // Everything is freed with the runtime a few milliseconds later; searching for garbage on the
    // way took a fifth of the time.
    runtime.set_gc_threshold(MEMORY_LIMIT);
    let mut steps = 0;
    runtime.set_interrupt_handler(Some(Box::new(move || {
        steps += 1;
        steps > step_limit
    })));
    let context = Context::full(&runtime).map_err(|error| error.to_string())?;
    context.with(|js| {
        work(&js)
            .catch(&js)
            .map_err(|error| message(&error.to_string()))
    })
}

fn run(js: &Ctx, request: &str) -> rquickjs::Result<String> {
    let sloppy = || {
        let mut options = EvalOptions::default();
        options.strict = false;
        options
    };
    js.eval_with_options::<(), _>(ENVIRONMENT, sloppy())?;
    load(js)?;
    js.eval_with_options::<(), _>(DRAW, sloppy())?;
    let draw: Function = js.globals().get("draw")?;
    draw.call((request,))
}

fn load(js: &Ctx<'_>) -> rquickjs::Result<()> {
    // SAFETY: the bytes were written by this very version of QuickJS in this package's build
    // script, and are part of the binary.
    let module = unsafe { Module::load(js.clone(), ECHARTS) }?;
    module.eval()?.1.finish::<()>()
}

/// The message without the stack, which would speak of lines of ours.
fn message(error: &str) -> String {
    let line = error.lines().find(|line| !line.trim().is_empty());
    let line = line.unwrap_or("unknown error").trim();
    let line = line.strip_prefix("Error: ").unwrap_or(line);
    match line {
        "interrupted" | "InternalError: interrupted" => "it takes too long".to_owned(),
        line => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::within_limits;

    #[test]
    fn a_script_is_held_within_its_limits() {
        for (script, error) in [
            ("for (;;) {}", "it takes too long"),
            (
                "try { for (;;) {} } catch { for (;;) {} }",
                "it takes too long",
            ),
            ("(function again() { again(); })()", "stack"),
            (
                "const all = []; for (;;) all.push(new Uint8Array(1e7))",
                "memory",
            ),
            ("throw new Error('no such series')", "no such series"),
            ("fetch('http://a.example/')", "fetch is not defined"),
        ] {
            let found = within_limits(50, |js| js.eval::<(), _>(script)).unwrap_err();
            assert!(found.contains(error), "{script}: {found}");
        }
    }
}
