use super::*;
use crate::rig::{Client, complete};

struct Case {
    dir: tempfile::TempDir,
    address: String,
}

impl Case {
    async fn start(options: impl Fn(PodIdentityOptions) -> PodIdentityOptions) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let token_file = dir.path().join("token");
        std::fs::write(&token_file, "pod-token\n").unwrap();
        let options = options(PodIdentityOptions {
            token_file,
            rotate_s: 1,
            valid_s: 3,
            write_keys: Some(dir.path().join("keys.json")),
            trouble: None,
        });
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        tokio::spawn(serve(listener, options, std::future::pending()));
        Self { dir, address }
    }

    async fn ask(&self, path: &str, token: &str) -> (u16, serde_json::Value) {
        let mut client = Client::connect(&self.address).await;
        let request = format!("GET {path} HTTP/1.1\r\nhost: x\r\nauthorization: {token}\r\n\r\n");
        client.send(request.as_bytes()).await;
        let answer = client.read_until(complete).await;
        (
            answer.status(),
            serde_json::from_str(&answer.body()).unwrap(),
        )
    }

    /// What it hands out, once it has something.
    async fn keys(&self) -> serde_json::Value {
        for _ in 0..200 {
            let (status, keys) = self.ask("/v1/credentials", "pod-token").await;
            if status == 200 {
                return keys;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("no keys in two seconds");
    }
}

#[tokio::test]
async fn keys_are_for_who_has_the_token_and_are_replaced_in_turn() {
    let case = Case::start(|it| it).await;
    let first = case.keys().await;
    let expires = time::parse(first["Expiration"].as_str().unwrap()).unwrap();
    let left = expires - unix_seconds().cast_signed();
    assert!((0..=3).contains(&left), "{left} s");
    assert_eq!(case.ask("/v1/credentials", "another").await.0, 400);
    assert_eq!(case.ask("/v1/others", "pod-token").await.0, 404);
    // The token of a pod changes.
    std::fs::write(case.dir.path().join("token"), "pod-token-2").unwrap();
    assert_eq!(case.ask("/v1/credentials", "pod-token").await.0, 400);
    let (status, _) = case.ask("/v1/credentials", "pod-token-2").await;
    assert_eq!(status, 200);
    std::fs::write(case.dir.path().join("token"), "pod-token").unwrap();

    tokio::time::sleep(Duration::from_millis(1_100)).await;
    let second = case.keys().await;
    assert_ne!(first["AccessKeyId"], second["AccessKeyId"]);
    let file = std::fs::read_to_string(case.dir.path().join("keys.json")).unwrap();
    let file: serde_json::Value = serde_json::from_str(&file).unwrap();
    for keys in [&first, &second] {
        let known = &file["keys"][keys["AccessKeyId"].as_str().unwrap()];
        assert_eq!(known["secret"], keys["SecretAccessKey"]);
        assert_eq!(known["session_token"], keys["Token"]);
        assert_eq!(known["expires"], keys["Expiration"]);
    }
}

#[tokio::test]
async fn an_agent_in_trouble_refuses_or_hangs() {
    let refusing = Case::start(|it| PodIdentityOptions {
        trouble: Some(Trouble::Refuse),
        ..it
    })
    .await;
    let (status, said) = refusing.ask("/v1/credentials", "pod-token").await;
    assert_eq!(
        (status, &said["message"]),
        (500, &"there are no keys".into())
    );

    let hanging = Case::start(|it| PodIdentityOptions {
        trouble: Some(Trouble::Hang),
        ..it
    })
    .await;
    let asked = hanging.ask("/v1/credentials", "pod-token");
    let answered = tokio::time::timeout(Duration::from_millis(200), asked).await;
    assert!(answered.is_err(), "{answered:?}");
}

#[tokio::test]
async fn it_does_not_listen_beyond_loopback() {
    let listener = TcpListener::bind("0.0.0.0:0").await.unwrap();
    let agent = Agent::default();
    let served = agent.serve(listener, PathBuf::new(), std::future::pending());
    let told = served.await.unwrap_err().to_string();
    assert!(told.contains("loopback"), "{told}");
}
