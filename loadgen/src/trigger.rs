//! What is done to a chain in an experiment: a command or a request of the user's, and what it said.

use crate::LoadError;
use config::scenario::{Action, ActionRequest};
use record::clock::{Nanos, now};
use record::experiment::Triggered;
use rustix::process::{Pid, Signal, kill_process_group};
use std::fs::File;
use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::time::Duration;

/// About as many bytes of an answer are read and kept.
const ANSWER: usize = 64 << 10;
/// Lines of what was said that an error shows.
const LINES: usize = 5;

/// An action under way. Dropping it kills its command.
pub(crate) struct Running {
    what: String,
    /// It was started.
    pub(crate) begin: Nanos,
    end: Option<Nanos>,
    failed: Option<String>,
    log: PathBuf,
    work: Work,
}

enum Work {
    Command(Child),
    Request(Receiver<Result<(), String>>),
}

impl Running {
    /// Starts `action`, which writes what it says to `log`. A request is given up after `patience`.
    ///
    /// # Errors
    /// It cannot be started, or its key or log is not to be had.
    pub(crate) fn start(
        action: &Action,
        log: &Path,
        patience: Duration,
    ) -> Result<Self, LoadError> {
        let what = words(action);
        let file = |source| LoadError::File {
            path: log.to_owned(),
            source,
        };
        let cannot = |why: String| LoadError::Trigger {
            what: what.clone(),
            why,
        };
        if let Some(dir) = log.parent() {
            std::fs::create_dir_all(dir).map_err(file)?;
        }
        let said = File::create(log).map_err(file)?;
        let begin = now();
        let work = match (&action.run, &action.http) {
            (Some(run), _) => Work::Command(
                command(run, said).map_err(|e| cannot(format!("cannot be started: {e}")))?,
            ),
            (None, Some(http)) => Work::Request(request(http, said, patience).map_err(cannot)?),
            // The configuration's check lets none through.
            (None, None) => return Err(cannot("neither `run` nor `http`".to_owned())),
        };
        Ok(Self {
            what,
            begin,
            end: None,
            failed: None,
            log: log.to_owned(),
            work,
        })
    }

    /// When it had ended, as far as it has.
    pub(crate) fn ended(&mut self) -> Option<Nanos> {
        if self.end.is_some() {
            return self.end;
        }
        let result = match &mut self.work {
            Work::Command(child) => match child.try_wait() {
                Ok(None) => return None,
                Ok(Some(status)) if status.success() => Ok(()),
                Ok(Some(status)) => Err(format!("ended with {status}")),
                Err(error) => Err(error.to_string()),
            },
            Work::Request(answer) => match answer.try_recv() {
                Err(TryRecvError::Empty) => return None,
                Ok(result) => result,
                Err(TryRecvError::Disconnected) => Err("its thread is gone".to_owned()),
            },
        };
        self.end = Some(now());
        self.failed = result.err();
        self.end
    }

    /// Why it failed, where it has.
    pub(crate) fn error(&self) -> Option<LoadError> {
        let why = self.failed.as_ref()?;
        let said = std::fs::read_to_string(&self.log).unwrap_or_default();
        let last: Vec<&str> = said.lines().rev().take(LINES).collect();
        let last: Vec<&str> = last.into_iter().rev().collect();
        let said = match last.is_empty() {
            true => "it said nothing".to_owned(),
            false => format!("it said: {}", last.join("; ")),
        };
        Some(LoadError::Trigger {
            what: self.what.clone(),
            why: format!("{why}; {said} (all of it: {})", self.log.display()),
        })
    }

    /// That it did not end within `limit`.
    pub(crate) fn late(&self, limit: Duration) -> LoadError {
        LoadError::Trigger {
            what: self.what.clone(),
            why: format!("did not end within `limit` {limit:?}, and was killed; raise the limit"),
        }
    }

    /// What is kept of it; kills it where it still runs.
    pub(crate) fn close(mut self) -> Triggered {
        let end = self.ended();
        let name = self.log.file_name().unwrap_or_default();
        Triggered {
            what: self.what.clone(),
            begin: self.begin,
            end,
            failed: self.failed.clone(),
            log: format!("{LOGS}/{}", name.to_string_lossy()),
        }
    }
}

/// The folder of the run directory with what triggers said.
pub(crate) const LOGS: &str = "triggers";

impl Drop for Running {
    fn drop(&mut self) {
        if self.ended().is_some() {
            return;
        }
        if let Work::Command(child) = &mut self.work {
            let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
            if let Some(pid) = pid {
                // With what it started itself; an error is one that has just ended.
                let _ = kill_process_group(pid, Signal::KILL);
            }
            let _ = child.wait();
        }
    }
}

fn words(action: &Action) -> String {
    match (&action.run, &action.http) {
        (Some(run), _) => run.join(" "),
        (None, Some(http)) => format!("{} {}", http.method.as_str(), http.url),
        (None, None) => String::new(),
    }
}

/// In a process group of its own, so that it can be killed with what it starts.
fn command(run: &[String], said: File) -> std::io::Result<Child> {
    let (program, arguments) = run.split_first().ok_or(std::io::ErrorKind::InvalidInput)?;
    Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(said.try_clone()?)
        .stderr(said)
        .process_group(0)
        .spawn()
}

/// On a thread of its own: no thread that carries streams waits for it.
fn request(
    http: &ActionRequest,
    mut said: File,
    patience: Duration,
) -> Result<Receiver<Result<(), String>>, String> {
    let key = http.key_env.as_ref().map(|name| {
        std::env::var(name.as_str())
            .map_err(|_| format!("the environment variable {name} is not set; export it"))
    });
    let key = key.transpose()?;
    let method = reqwest::Method::from_bytes(http.method.as_str().as_bytes())
        .map_err(|error| error.to_string())?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| error.to_string())?;
    let client = reqwest::Client::builder()
        .no_proxy()
        .timeout(patience)
        .build()
        .map_err(|error| error.to_string())?;
    let mut asked = client
        .request(method, http.url.to_string())
        .body(http.body.clone());
    for (name, value) in &http.headers {
        asked = asked.header(name.as_str(), value);
    }
    if let Some(key) = key {
        asked = asked.bearer_auth(key);
    }
    let (sender, receiver) = channel();
    let ask = async move {
        let mut answer = asked.send().await.map_err(|error| chain(&error))?;
        let status = answer.status();
        let mut body = Vec::new();
        while body.len() < ANSWER
            && let Some(part) = answer.chunk().await.map_err(|error| chain(&error))?
        {
            body.extend_from_slice(&part);
        }
        let kept = writeln!(said, "{status}").and_then(|()| said.write_all(&body));
        kept.map_err(|error| format!("its answer cannot be kept: {error}"))?;
        match status.is_success() {
            true => Ok(()),
            false => Err(format!("answered with status {}", status.as_u16())),
        }
    };
    std::thread::Builder::new()
        .name("trigger".to_owned())
        .spawn(move || {
            // An experiment that is over no longer listens.
            let _ = sender.send(runtime.block_on(ask));
        })
        .map_err(|error| error.to_string())?;
    Ok(receiver)
}

/// An error with its causes.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(one) = cause {
        text = format!("{text}: {one}");
        cause = one.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testbed::Server;

    fn done(action: &Action) -> (Triggered, Option<String>) {
        let dir = tempfile::tempdir().unwrap();
        let patience = Duration::from_secs(10);
        let mut running = Running::start(action, &dir.path().join("logs/a.log"), patience).unwrap();
        let until = now() + 10_000_000_000;
        while running.ended().is_none() {
            assert!(now() < until);
            std::thread::sleep(Duration::from_millis(5));
        }
        let error = running.error().map(|error| error.to_string());
        (running.close(), error)
    }

    fn run(words: &[&str]) -> Action {
        Action {
            run: Some(words.iter().map(|word| (*word).to_owned()).collect()),
            http: None,
        }
    }

    fn post(server: &Server) -> Action {
        let url = format!("http://{}/restart", server.address);
        serde_json::from_value(serde_json::json!({"http": {"url": url, "body": "now"}})).unwrap()
    }

    #[test]
    fn a_command_is_told_by_its_exit_and_what_it_said() {
        let (told, error) = done(&run(&["sh", "-c", "sleep 0.1; echo fine"]));
        assert!(error.is_none() && told.failed.is_none(), "{error:?}");
        assert!(told.end.unwrap() - told.begin > 90_000_000);
        assert_eq!(told.log, "triggers/a.log");
        let (told, error) = done(&run(&[
            "sh",
            "-c",
            "echo out; echo no such pod >&2; exit 3",
        ]));
        let error = error.unwrap();
        assert!(
            error.contains("exit status: 3") && error.contains("out; no such pod"),
            "{error}"
        );
        assert!(told.failed.is_some());
    }

    #[test]
    fn a_program_that_is_not_there_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("a.log");
        let started = Running::start(&run(&["/no/such/program"]), &log, Duration::ZERO);
        let error = started.err().unwrap().to_string();
        assert!(error.contains("/no/such/program"), "{error}");
    }

    #[test]
    fn a_request_is_told_by_its_status() {
        let server = Server::start(|seen, stream| {
            let status = match seen.body.as_str() {
                "now" if seen.head.starts_with("POST /restart") => "202 Accepted",
                _ => "400 Bad Request",
            };
            let text = format!("HTTP/1.1 {status}\r\ncontent-length: 2\r\n\r\nok");
            stream.write_all(text.as_bytes()).is_ok()
        });
        let (told, error) = done(&post(&server));
        assert!(error.is_none() && told.what.starts_with("POST http://127.0.0.1"));
        let server = Server::start(|_, stream| {
            let text = "HTTP/1.1 503 Unavailable\r\ncontent-length: 4\r\n\r\nbusy";
            stream.write_all(text.as_bytes()).is_ok()
        });
        let (_, error) = done(&post(&server));
        let error = error.unwrap();
        assert!(
            error.contains("status 503") && error.contains("busy"),
            "{error}"
        );
    }

    #[test]
    fn a_command_that_is_not_waited_for_ends_with_what_it_started() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("a.log");
        let action = run(&["sh", "-c", "sleep 30 & echo $!; wait"]);
        let running = Running::start(&action, &log, Duration::ZERO).unwrap();
        let until = now() + 10_000_000_000;
        let pid = loop {
            assert!(now() < until);
            let said = std::fs::read_to_string(&log).unwrap();
            if let Ok(pid) = said.trim().parse::<u32>() {
                break pid;
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        let told = running.close();
        assert!(told.end.is_none() && told.failed.is_none());
        // Gone, or a zombie that nobody waits for.
        let state = || std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        while !(state().is_empty() || state().contains(") Z ")) {
            assert!(now() < until, "{}", state());
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}
