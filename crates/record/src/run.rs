//! The whole of a recording.

use std::io::Write;
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;

use pgdyno_capture::{CaptureError, RELAYED, Writer};
use pgdyno_clock::monotonic_ns;
use pgdyno_host::{Fault, Result};
use pgdyno_measure::say;
use pgdyno_relay::{Relay, RelaySpec, Summary, To};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::place_of_panic::{keep_places, place_of_panic};
use crate::recorder::Recorder;
use crate::store::Store;

/// What to record, and where to.
#[derive(Debug, Clone, Deserialize)]
pub struct RecordSpec {
    /// Where clients connect; port 0 takes a free one.
    listen: SocketAddr,
    /// Where the server is.
    to: To,
    /// The server as the capture names it.
    name: String,
    /// The capture.
    output: PathBuf,
    /// It ends by itself after so many seconds.
    seconds: Option<f64>,
    /// The end of standard input ends it.
    #[serde(default)]
    ends_with_stdin: bool,
}

/// Relays and records until SIGTERM or SIGINT, or what [`RecordSpec`] says. Writes JSON lines to `out`: `ready` when clients may connect,
/// `progress` about once a second, `full` when the file takes no more, `summary` when the capture is finished. A full disk ends no session: clients are
/// relayed on, and what was recorded until then is kept.
///
/// # Errors
/// An address or a file that cannot be used, and a recording without a statement, of which nothing is left.
pub fn run(spec: &RecordSpec, out: &mut impl Write) -> Result<()> {
    let stop = pgdyno_signals::block()
        .map_err(|error| Fault::new(format!("signals cannot be watched: {error}"), "raise the limit of files"))?;
    keep_places();
    let writer = Writer::record(&spec.output).map_err(fault)?;
    let relay = Relay::bind(&RelaySpec::at_once(spec.listen, spec.to.clone(), spec.ends_with_stdin))?;
    let address = relay.address();
    say(out, &json!({"ready": {"host": address.ip(), "port": address.port()}}));
    let mut store = Store::new(writer);
    // Each checkpoint says what was recorded.
    store.account.files = vec![(spec.name.clone(), RELAYED.to_owned())];
    let mut recorder = Recorder::new(store, monotonic_ns(), spec.seconds, out);
    // Whatever ends the relay, what was recorded is kept.
    let relayed = catch_unwind(AssertUnwindSafe(|| relay.run_with(stop, &mut recorder)));
    let relayed =
        relayed.unwrap_or_else(|_| Err(Fault::new(format!("the relay ended by {}", place_of_panic()), "report it")));
    let (store, took_s) = recorder.finish(monotonic_ns());
    let (relayed, broke) = match relayed {
        Ok(summary) => (Some(summary), None),
        Err(fault) => (None, Some(fault)),
    };
    let finished = finish(spec, store, relayed.as_ref(), took_s);
    if let Some(broke) = broke {
        let Ok(summary) = finished else { return Err(broke) };
        let data = json!({"path": spec.output.to_string_lossy(), "calls": summary["account"]["calls"]});
        let message = format!("{}; {} has what was recorded until then", broke.message, spec.output.display());
        return Err(Fault { message, of_host: true, ..broke }.coded("capture.record.broken", data));
    }
    say(out, &json!({"summary": finished?}));
    Ok(())
}

/// Finishes the capture. Returns what was recorded.
fn finish(spec: &RecordSpec, mut store: Store, relayed: Option<&Summary>, took_s: f64) -> Result<Value> {
    let failed = store.failed.take();
    let (tls_refused, replication) = (store.tls_refused, store.replication);
    let (writer, mut account) = store.into_parts();
    account.bytes = relayed.map_or(0, |relayed| relayed.to_server.bytes + relayed.to_client.bytes);
    let mut told = json!({
        "took_s": took_s,
        "tls_refused": tls_refused,
        "replication": replication,
        "connections": relayed.map(|relayed| relayed.connections),
        "connections_max": relayed.map(|relayed| relayed.connections_max),
        "short": relayed.map(|relayed| relayed.short),
        "unreachable": relayed.map(|relayed| relayed.unreachable),
        "cpu_s": relayed.map(|relayed| relayed.cpu_ns as f64 / 1e9),
        "ended_early": failed.as_ref().map(ToString::to_string),
    });
    if let Some(error) = failed.as_ref().filter(|_| account.calls == 0) {
        return Err(fault(CaptureError::unwritable(&spec.output, error)));
    }
    if account.calls == 0 {
        let connections = relayed.map_or(0, |relayed| relayed.connections);
        let why = if tls_refused > 0 {
            format!("{tls_refused} connections wanted TLS, which cannot be recorded")
        } else {
            format!("{connections} clients connected")
        };
        let data = json!({"tls_refused": tls_refused, "connections": connections});
        return Err(Fault::new(
            format!("nothing was recorded: no client sent a statement; {why}"),
            format!("let the application connect to {} with sslmode=disable or prefer", spec.listen),
        )
        .coded("capture.record.empty", data));
    }
    let unwritable = |error| failed.map_or(error, |first| CaptureError::unwritable(&spec.output, &first));
    writer.finish(&account).map_err(|error| fault(unwritable(error)))?;
    told["account"] = json!(account);
    Ok(told)
}

fn fault(error: CaptureError) -> Fault {
    Fault { code: error.code, data: error.data, ..Fault::new(error.message, error.remedy) }
}
