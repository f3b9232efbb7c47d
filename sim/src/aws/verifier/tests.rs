use super::*;
use crate::aws::sigv4::signed_fields;
use crate::http::RequestHead;

/// 2026-01-01T00:00:00Z.
const AT: i64 = 1_767_225_600;
const BODY: &str = r#"{"messages":[{"role":"user","content":[{"text":"a: \"b\", c"}]}]}"#;
const TARGET: &str = "/model/arn%3Aaws%3Abedrock%3Aus-east-1%3A1%3Aimported-model%2Fab/converse";
const KEYS: (&str, &str, Option<&str>) = ("AKIDONE", "hush-secret", Some("hush-token"));

struct Case {
    dir: tempfile::TempDir,
    verifier: Verifier,
}

impl Case {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("keys.json");
        std::fs::write(
            &path,
            r#"{"keys": {"AKIDONE": {"secret": "hush-secret", "session_token": "hush-token", "expires": "2026-01-02T00:00:00Z"},
                "AKIDTWO": {"secret": "hush-other"}}, "bearer": ["hush-bearer"]}"#,
        )
        .unwrap();
        let options = KeyOptions {
            aws_keys: Some(path),
            ..KeyOptions::default()
        };
        let verifier = Verifier::of(&options, "bedrock").unwrap().unwrap();
        Self { dir, verifier }
    }

    /// Checks what arrives `late` seconds after it was signed, with the head and body changed on the way.
    fn arrives(
        &self,
        late: i64,
        change: impl Fn(String) -> String,
        body: &str,
    ) -> Result<(), Refused> {
        self.arrives_signed(KEYS, ("bedrock", "us-east-1"), late, change, body)
    }

    fn arrives_signed(
        &self,
        keys: (&str, &str, Option<&str>),
        scope: (&str, &str),
        late: i64,
        change: impl Fn(String) -> String,
        body: &str,
    ) -> Result<(), Refused> {
        let fields = "Host: 127.0.0.1:9\r\nContent-Type: application/json\r\n";
        let plain = parsed(&format!("POST {TARGET} HTTP/1.1\r\n{fields}\r\n"));
        let signed = signed_fields(&received(&plain, BODY), keys, scope, AT);
        let head = parsed(&change(format!(
            "POST {TARGET} HTTP/1.1\r\n{fields}{signed}\r\n"
        )));
        self.verifier.check_at(&received(&head, body), AT + late)
    }
}

fn parsed(text: &str) -> RequestHead {
    RequestHead::parse(text.as_bytes()).unwrap().unwrap().0
}

fn received<'a>(head: &'a RequestHead, body: &'a str) -> Received<'a> {
    Received {
        method: &head.method,
        target: &head.target,
        headers: &head.headers,
        body: body.as_bytes(),
    }
}

fn same(head: String) -> String {
    head
}

#[track_caller]
fn refused(found: Result<(), Refused>, kind: &str, message: &str, differs: &str) {
    let found = found.unwrap_err();
    assert_eq!(found.kind, kind, "{found:?}");
    assert!(found.message.contains(message), "{found:?}");
    assert!(found.differs.contains(differs), "{found:?}");
    assert!(!format!("{found:?}").contains("hush"), "{found:?}");
}

const INVALID: &str = "InvalidSignatureException";

#[test]
fn what_arrives_as_it_was_signed_passes_within_five_minutes() {
    let case = Case::new();
    for late in [-300, 0, 300] {
        assert_eq!(case.arrives(late, same, BODY), Ok(()));
    }
    // Fields that are not signed may come and go, and the case of names does not matter.
    let more = |head: String| {
        head.replace("Content-Type", "content-TYPE")
            .replace("\r\n\r\n", "\r\ntraceparent: x\r\n\r\n")
    };
    assert_eq!(case.arrives(0, more, BODY), Ok(()));
    let long_lived = ("AKIDTWO", "hush-other", None);
    let found = case.arrives_signed(long_lived, ("bedrock", "us-east-1"), 0, same, BODY);
    assert_eq!(found, Ok(()));
}

#[test]
fn a_wrong_clock_is_told() {
    let case = Case::new();
    refused(
        case.arrives(301, same, BODY),
        INVALID,
        "Signature expired: 20260101T000000Z is now earlier than 20260101T000001Z (20260101T000501Z - 5 min.)",
        "date: signed 301 s behind",
    );
    refused(
        case.arrives(-900, same, BODY),
        INVALID,
        "Signature not yet current: 20260101T000000Z is still later than 20251231T235000Z (20251231T234500Z + 5 min.)",
        "date: signed 900 s ahead of",
    );
    let undated = |head: String| head.replace("x-amz-date: ", "x-other: ");
    refused(
        case.arrives(0, undated, BODY),
        "IncompleteSignatureException",
        "X-Amz-Date",
        "date:",
    );
    let other_day = |head: String| head.replace("AKIDONE/20260101", "AKIDONE/20251231");
    refused(
        case.arrives(0, other_day, BODY),
        INVALID,
        "'20251231' != '20260101'",
        "scope: its date",
    );
}

#[test]
fn unknown_keys_stale_tokens_and_other_scopes_are_told() {
    let case = Case::new();
    let bedrock = ("bedrock", "us-east-1");
    let with = |keys, scope| case.arrives_signed(keys, scope, 0, same, BODY);
    refused(
        with(("AKIDSIX", "hush", None), bedrock),
        "UnrecognizedClientException",
        "is invalid.",
        "credential: the key file has no access key AKIDSIX",
    );
    refused(
        with(("AKIDONE", "hush-secret", Some("hush-older")), bedrock),
        "ExpiredTokenException",
        "is expired",
        "token: it is not the one",
    );
    refused(
        with(("AKIDONE", "hush-secret", None), bedrock),
        "UnrecognizedClientException",
        "is invalid.",
        "token: x-amz-security-token is missing",
    );
    refused(
        with(("AKIDTWO", "hush-other", Some("hush-token")), bedrock),
        "UnrecognizedClientException",
        "is invalid.",
        "keys that have none",
    );
    refused(
        case.arrives(86_400, same, BODY),
        "ExpiredTokenException",
        "is expired",
        "token: the keys expired at 2026-01-02T00:00:00Z",
    );
    refused(
        with(KEYS, ("bedrock", "eu-west-1")),
        INVALID,
        "valid region",
        "scope: signed for region eu-west-1, expected us-east-1",
    );
    refused(
        with(KEYS, ("bedrock-agentcore", "us-east-1")),
        INVALID,
        "correct service: 'bedrock'",
        "scope: signed for service bedrock-agentcore",
    );
}

#[test]
fn what_changed_on_the_way_is_refused_and_named_where_it_can_be() {
    let case = Case::new();
    let unknown = "canonical request: ";
    let changed = BODY.replace("user", "uses");
    refused(case.arrives(0, same, &changed), INVALID, MISMATCH, unknown);
    let field = |head: String| head.replace("application/json", "text/plain");
    refused(case.arrives(0, field, BODY), INVALID, MISMATCH, unknown);
    let path = |head: String| head.replace("Fab/", "Fac/");
    refused(case.arrives(0, path, BODY), INVALID, MISMATCH, unknown);
    let wrong_secret = ("AKIDONE", "hush", Some("hush-token"));
    refused(
        case.arrives_signed(wrong_secret, ("bedrock", "us-east-1"), 0, same, BODY),
        INVALID,
        MISMATCH,
        unknown,
    );
    let gone = |head: String| head.replace("Content-Type: application/json\r\n", "");
    refused(
        case.arrives(0, gone, BODY),
        INVALID,
        MISMATCH,
        "canonical headers: content-type was signed and has not arrived",
    );
    let spaced = BODY.replace(":[", ": [").replace("\":\"", "\": \"");
    let spaced = spaced.replace("\",\"", "\", \"");
    assert_ne!(spaced, BODY);
    refused(
        case.arrives(0, same, &spaced),
        INVALID,
        MISMATCH,
        "body: signed as the same JSON with other white space",
    );
    let unsigned = |head: String| {
        head.replace(
            "SignedHeaders=content-type;host;x-amz-date;x-amz-security-token",
            "SignedHeaders=content-type;x-amz-date;x-amz-security-token",
        )
    };
    refused(
        case.arrives(0, unsigned, BODY),
        INVALID,
        "'host' must be",
        "signed headers: host",
    );
}

/// Signs what a client gets wrong, as it would.
fn mistaken(case: &Case, mistake: impl Fn(&mut Canonical), more: &str) -> String {
    let fields = format!("host: 127.0.0.1:9\r\n{more}");
    let target = format!("{TARGET}?a=b");
    let plain = format!(
        "POST {target} HTTP/1.1\r\n{fields}x-amz-date: 20260101T000000Z\r\nx-amz-security-token: hush-token\r\n"
    );
    let head = parsed(&format!("{plain}\r\n"));
    let mut names: Vec<String> = head
        .headers
        .0
        .iter()
        .map(|(name, _)| name.clone())
        .collect();
    names.sort();
    let mut canonical = Canonical::of(&received(&head, BODY), &names).unwrap();
    mistake(&mut canonical);
    let scope = Scope {
        date: "20260101",
        region: "us-east-1",
        service: "bedrock",
    };
    let signature = canonical.signature("hush-secret", &scope, "20260101T000000Z");
    let head = parsed(&format!(
        "{plain}authorization: AWS4-HMAC-SHA256 Credential=AKIDONE/20260101/us-east-1/bedrock/aws4_request, SignedHeaders={}, Signature={signature}\r\n\r\n",
        names.join(";")
    ));
    let found = case.verifier.check_at(&received(&head, BODY), AT);
    found.map_or_else(|refused| refused.differs, |()| "nothing".to_owned())
}

#[test]
fn usual_mistakes_are_recognised() {
    let case = Case::new();
    let host = |it: &mut Canonical, host: &str| {
        let mut fields = it.fields.iter_mut();
        host.clone_into(&mut fields.find(|(name, _)| name == "host").unwrap().1);
    };
    let told = [
        (mistaken(&case, |_| {}, ""), "nothing"),
        (
            mistaken(&case, |it| TARGET.clone_into(&mut it.path), ""),
            "path: signed as it is sent",
        ),
        (
            mistaken(&case, |it| it.path = encoded(&it.path, true), ""),
            "path: signed percent-encoded twice more",
        ),
        (
            mistaken(&case, |it| host(it, "127.0.0.1"), ""),
            "host: signed without its port",
        ),
        (
            mistaken(
                &case,
                |it| host(it, "bedrock-runtime.us-east-1.amazonaws.com"),
                "",
            ),
            "host: signed for the endpoint of AWS",
        ),
        (
            mistaken(&case, |it| it.query.clear(), ""),
            "query: signed without it",
        ),
        (
            mistaken(&case, |it| UNSIGNED.clone_into(&mut it.payload), ""),
            "body: signed as UNSIGNED",
        ),
        (
            mistaken(
                &case,
                |it| "0123".clone_into(&mut it.payload),
                "x-amz-content-sha256: 0123\r\n",
            ),
            "body: it is not what x-amz-content-sha256 tells",
        ),
    ];
    for (found, expected) in told {
        assert!(found.starts_with(expected), "{found}, expected {expected}");
    }
}

#[test]
fn bearer_keys_and_requests_without_any_are_told_apart() {
    let case = Case::new();
    let with = |field: &str| {
        let head = parsed(&format!("POST / HTTP/1.1\r\n{field}\r\n"));
        case.verifier.check_at(&received(&head, ""), AT)
    };
    assert_eq!(with("authorization: Bearer hush-bearer\r\n"), Ok(()));
    refused(
        with("authorization: Bearer hush-wrong\r\n"),
        "AccessDeniedException",
        "API Key",
        "token:",
    );
    refused(
        with(""),
        "MissingAuthenticationTokenException",
        "Missing Authentication Token",
        "authorization:",
    );
    for wrong in [
        "Basic hush",
        "AWS4-HMAC-SHA256 Credential=hush",
        "AWS4-HMAC-SHA256 Credential=A/1/aws4_request, SignedHeaders=host, Signature=hush",
    ] {
        refused(
            with(&format!("authorization: {wrong}\r\n")),
            "IncompleteSignatureException",
            "requires",
            "authorization:",
        );
    }
}

#[test]
fn a_file_is_read_again_for_an_unknown_key() {
    let case = Case::new();
    let path = case.dir.path().join("keys.json");
    let later = SystemTime::now() + std::time::Duration::from_secs(5);
    let write = |text: &str| {
        std::fs::write(&path, text).unwrap();
        let file = std::fs::File::options().write(true).open(&path).unwrap();
        file.set_modified(later).unwrap();
    };
    let newest = ("AKIDNEW", "hush", None);
    let ask = || case.arrives_signed(newest, ("bedrock", "us-east-1"), 0, same, BODY);
    assert!(ask().is_err());
    write(r#"{"keys": {"AKIDNEW": {"secret": "hush"}}}"#);
    assert_eq!(ask(), Ok(()));
    refused(
        case.arrives(0, same, BODY),
        "UnrecognizedClientException",
        "invalid",
        "AKIDONE",
    );
}
