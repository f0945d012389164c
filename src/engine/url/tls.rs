//! Encrypted connections: rustls between tokio-postgres and its socket. Entry: [`connector`], which
//! reads certificates once; what is verified is [`Encryption`]'s to say.

use super::target::{Encryption, RootCertificates, Target};
use crate::diagnostic::Diagnostic;
use sha2::{Digest, Sha256, Sha384, Sha512};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::Socket;
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};
use tokio_rustls::rustls::client::danger::{
    HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier,
};
use tokio_rustls::rustls::client::{WebPkiServerVerifier, verify_server_name};
use tokio_rustls::rustls::crypto::{self, CryptoProvider};
use tokio_rustls::rustls::pki_types::pem::{self, PemObject};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use tokio_rustls::rustls::server::ParsedCertificate;
use tokio_rustls::rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
};

/// Makes encrypted streams; without a configuration it is never asked to.
#[derive(Clone, Default)]
pub struct Connector {
    config: Option<Arc<ClientConfig>>,
}

impl fmt::Debug for Connector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let encrypts = self.config.is_some();
        f.debug_struct("Connector")
            .field("encrypts", &encrypts)
            .finish()
    }
}

/// For this server; a certificate that cannot be read is told before anything is sent.
pub fn connector(target: &Target) -> Result<Connector, Diagnostic> {
    if target.encryption == Encryption::Disable {
        return Ok(Connector::default());
    }
    let provider = Arc::new(crypto::ring::default_provider());
    let verifier = Verifier::new(target, &provider)?;
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| broken(&error))?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier));
    let config = match &target.client_certificate {
        None => config.with_no_client_auth(),
        Some((certificate, key)) => {
            let chain = certificates(certificate)?;
            let private = PrivateKeyDer::from_pem_file(key)
                .map_err(|error| unreadable("private key", key, &error))?;
            config
                .with_client_auth_cert(chain, private)
                .map_err(|error| broken(&error))?
        }
    };
    Ok(Connector {
        config: Some(Arc::new(config)),
    })
}

fn broken(error: &Error) -> Diagnostic {
    Diagnostic::error(format!("TLS cannot be set up: {error}"))
}

fn unreadable(what: &str, file: &Path, error: &pem::Error) -> Diagnostic {
    let file = file.display();
    let why = match error {
        pem::Error::Io(error) => error.to_string(),
        pem::Error::NoItemsFound => "it has none".to_owned(),
        other => format!("{other:?}"),
    };
    Diagnostic::error(format!("cannot read the {what} in `{file}`: {why}"))
}

fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, Diagnostic> {
    let read = || -> Result<Vec<_>, pem::Error> { CertificateDer::pem_file_iter(file)?.collect() };
    let found = read().map_err(|error| unreadable("certificates", file, &error))?;
    match found.is_empty() {
        true => Err(unreadable("certificates", file, &pem::Error::NoItemsFound)),
        false => Ok(found),
    }
}

// ---- who the server is --------------------------------------------------------------------------

#[derive(Debug)]
struct Verifier {
    provider: Arc<CryptoProvider>,
    /// None: whoever it is.
    chain: Option<Chain>,
}

#[derive(Debug)]
struct Chain {
    webpki: Arc<WebPkiServerVerifier>,
    roots: Vec<CertificateDer<'static>>,
    /// The name too, not only who vouches.
    name: bool,
}

impl Verifier {
    fn new(target: &Target, provider: &Arc<CryptoProvider>) -> Result<Self, Diagnostic> {
        let verifies = matches!(
            target.encryption,
            Encryption::VerifyCa | Encryption::VerifyFull
        );
        let chain = match verifies {
            false => None,
            true => Some(Chain::new(target, provider)?),
        };
        Ok(Self {
            provider: Arc::clone(provider),
            chain,
        })
    }
}

impl Chain {
    fn new(target: &Target, provider: &Arc<CryptoProvider>) -> Result<Self, Diagnostic> {
        let file = root_file(&target.root_certificates)?;
        let roots = certificates(&file)?;
        let mut store = RootCertStore::empty();
        let (_, unusable) = store.add_parsable_certificates(roots.iter().cloned());
        if store.is_empty() {
            let file = file.display();
            return Err(Diagnostic::error(format!(
                "none of the {unusable} certificates in `{file}` can be used"
            )));
        }
        let webpki =
            WebPkiServerVerifier::builder_with_provider(Arc::new(store), Arc::clone(provider))
                .build()
                .map_err(|error| Diagnostic::error(format!("TLS cannot be set up: {error}")))?;
        Ok(Self {
            webpki,
            roots,
            name: target.encryption == Encryption::VerifyFull,
        })
    }
}

/// Where systems keep the certificates that they trust.
const SYSTEM_BUNDLES: [&str; 5] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
    "/opt/homebrew/etc/ca-certificates/cert.pem",
];

fn root_file(roots: &RootCertificates) -> Result<PathBuf, Diagnostic> {
    match roots {
        RootCertificates::File(file) => Ok(file.clone()),
        RootCertificates::Default(Some(file)) if file.exists() => Ok(file.clone()),
        RootCertificates::Default(_) => Err(Diagnostic::error(
            "there is no root certificate to verify the server with",
        )
        .hint("name it with `sslrootcert=FILE`; `sslrootcert=system` are those of this system")),
        RootCertificates::System => {
            let bundles = SYSTEM_BUNDLES.into_iter().map(PathBuf::from);
            let mut there = bundles.filter(|bundle| bundle.exists());
            there.next().ok_or_else(|| {
                Diagnostic::error("the certificates that this system trusts are not found")
                    .note(format!("looked for {}", SYSTEM_BUNDLES.join(", ")))
                    .hint("name them with `sslrootcert=FILE`")
            })
        }
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let Some(chain) = &self.chain else {
            return Ok(ServerCertVerified::assertion());
        };
        // A certificate that is its own root vouches for itself; webpki takes none that may sign
        // others, which openssl's own are.
        if chain.roots.iter().any(|root| root == end_entity) {
            if chain.name {
                verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
            }
            return Ok(ServerCertVerified::assertion());
        }
        let verified = chain.webpki.verify_server_cert(
            end_entity,
            intermediates,
            server_name,
            ocsp_response,
            now,
        );
        match verified {
            // Names are looked at once the chain is found good.
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) if !chain.name => Ok(ServerCertVerified::assertion()),
            other => other,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        crypto::verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        crypto::verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider
            .signature_verification_algorithms
            .supported_schemes()
    }
}

// ---- the stream ---------------------------------------------------------------------------------

/// One handshake to come.
pub struct Handshake {
    config: Option<Arc<ClientConfig>>,
    host: String,
}

pub struct Encrypted(tokio_rustls::client::TlsStream<Socket>);

impl MakeTlsConnect<Socket> for Connector {
    type Stream = Encrypted;
    type TlsConnect = Handshake;
    type Error = io::Error;

    fn make_tls_connect(&mut self, host: &str) -> Result<Handshake, io::Error> {
        Ok(Handshake {
            config: self.config.clone(),
            host: host.to_owned(),
        })
    }
}

impl TlsConnect<Socket> for Handshake {
    type Stream = Encrypted;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Encrypted, io::Error>> + Send>>;

    fn connect(self, socket: Socket) -> Self::Future {
        Box::pin(async move {
            let config = self
                .config
                .ok_or_else(|| io::Error::other("this connection is not to be encrypted"))?;
            let name = ServerName::try_from(self.host).map_err(io::Error::other)?;
            let connector = tokio_rustls::TlsConnector::from(config);
            Ok(Encrypted(connector.connect(name, socket).await?))
        })
    }
}

impl TlsStream for Encrypted {
    /// RFC 5929: the hash of the server's certificate, so that a login cannot be passed on by who
    /// sits between.
    fn channel_binding(&self) -> ChannelBinding {
        let (_, connection) = self.0.get_ref();
        let first = connection
            .peer_certificates()
            .and_then(|chain| chain.first());
        match first.and_then(|certificate| end_point(certificate)) {
            Some(hash) => ChannelBinding::tls_server_end_point(hash),
            None => ChannelBinding::none(),
        }
    }
}

impl AsyncRead for Encrypted {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl AsyncWrite for Encrypted {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, buffer)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}

// ---- channel binding ----------------------------------------------------------------------------

/// `tls-server-end-point` of a certificate: hashed as its signature is, MD5 and SHA-1 as SHA-256.
/// None where the signature names no hash (Ed25519), which leaves the binding undefined.
fn end_point(certificate: &[u8]) -> Option<Vec<u8>> {
    // Certificate ::= SEQUENCE { tbsCertificate SEQUENCE, signatureAlgorithm SEQUENCE { OID … } … }
    let (certificate_body, _) = element(certificate, 0x30)?;
    let (_, after_tbs) = element(certificate_body, 0x30)?;
    let (algorithm, _) = element(after_tbs, 0x30)?;
    let (oid, parameters) = element(algorithm, 0x06)?;
    const RSA: [u8; 8] = [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01];
    const ECDSA: [u8; 7] = [0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03];
    let bits = if let Some(kind) = oid.strip_prefix(&RSA) {
        match kind {
            [4 | 5 | 11] => 256,
            [12] => 384,
            [13] => 512,
            // RSASSA-PSS names its hash among its parameters; without one it is SHA-1.
            [10] => pss_bits(parameters),
            _ => return None,
        }
    } else {
        match oid.strip_prefix(&ECDSA)? {
            [2] => 256,
            [3] => 384,
            [4] => 512,
            _ => return None,
        }
    };
    Some(match bits {
        384 => Sha384::digest(certificate).to_vec(),
        512 => Sha512::digest(certificate).to_vec(),
        _ => Sha256::digest(certificate).to_vec(),
    })
}

fn pss_bits(parameters: &[u8]) -> u32 {
    const SHA2: [u8; 8] = [0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02];
    let hash = || {
        let (sequence, _) = element(parameters, 0x30)?;
        let (explicit, _) = element(sequence, 0xa0)?;
        let (algorithm, _) = element(explicit, 0x30)?;
        let (oid, _) = element(algorithm, 0x06)?;
        oid.strip_prefix(&SHA2)?.first().copied()
    };
    match hash() {
        Some(2) => 384,
        Some(3) => 512,
        _ => 256,
    }
}

/// The content of the DER element that `bytes` begins with, and what comes after it.
fn element(bytes: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (&[found, first], rest) = bytes.split_first_chunk::<2>()?;
    if found != tag {
        return None;
    }
    let (length, rest) = if first < 0x80 {
        (usize::from(first), rest)
    } else {
        let count = usize::from(first & 0x7f);
        if !(1..=4).contains(&count) {
            return None;
        }
        let (digits, rest) = rest.split_at_checked(count)?;
        let length = digits
            .iter()
            .fold(0_usize, |length, digit| length << 8 | usize::from(*digit));
        (length, rest)
    };
    rest.split_at_checked(length)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A certificate as far as it is looked at.
    fn certificate(algorithm: &[u8]) -> Vec<u8> {
        let wrap = |tag: u8, content: &[u8]| {
            let mut element = vec![tag, 0x81, u8::try_from(content.len()).unwrap()];
            element.extend(content);
            element
        };
        let body = [wrap(0x30, b"to be signed"), wrap(0x30, algorithm)].concat();
        wrap(0x30, &body)
    }

    #[test]
    fn a_certificate_is_hashed_as_its_signature_is() {
        let rsa = |last| vec![6, 9, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, last];
        let ecdsa = |last| vec![6, 8, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, last];
        let pss = |kind| {
            let hash = [6, 9, 0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02, kind];
            let parameters = [&[0x30, 15, 0xa0, 13, 0x30, 11][..], &hash].concat();
            [rsa(10), parameters].concat()
        };
        for (algorithm, bytes) in [
            (rsa(5), Some(32)),
            (rsa(11), Some(32)),
            (rsa(12), Some(48)),
            (rsa(13), Some(64)),
            (ecdsa(2), Some(32)),
            (ecdsa(3), Some(48)),
            (ecdsa(4), Some(64)),
            (pss(1), Some(32)),
            (pss(2), Some(48)),
            (pss(3), Some(64)),
            (rsa(10), Some(32)),
            (vec![6, 3, 0x2b, 0x65, 0x70], None),
        ] {
            let hash = end_point(&certificate(&algorithm));
            assert_eq!(hash.map(|hash| hash.len()), bytes, "{algorithm:?}");
        }
        let whole = certificate(&rsa(11));
        assert_eq!(end_point(&whole).unwrap(), Sha256::digest(&whole).to_vec());
        for length in 0..whole.len() {
            assert_eq!(end_point(&whole[..length]), None);
        }
    }
}
