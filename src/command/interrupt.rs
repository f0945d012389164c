//! Ctrl-C and SIGTERM: the first asks the measuring to stop in order, and a later one ends the
//! program at once, should that take long. What runs for it ends with it either way.

use std::time::Duration;

/// So long a second signal says no more than the first: keys are pressed twice.
const PATIENCE: Duration = Duration::from_secs(2);

/// Returns when the person or the system asks the tool to stop.
pub async fn requested() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        if let Ok(mut terminate) = signal(SignalKind::terminate()) {
            tokio::select! {
                _ = tokio::signal::ctrl_c() => {}
                _ = terminate.recv() => {}
            }
            tokio::spawn(async {
                tokio::time::sleep(PATIENCE).await;
                // SAFETY: what the system does by itself takes the place of the handler.
                unsafe {
                    libc::signal(libc::SIGINT, libc::SIG_DFL);
                    libc::signal(libc::SIGTERM, libc::SIG_DFL);
                }
            });
            return;
        }
    }
    let _ = tokio::signal::ctrl_c().await;
}
