//! TLS to a daemon, with the files that the docker client keeps in one folder: `ca.pem` says whom to
//! trust, `cert.pem` and `key.pem` say who we are.

use std::path::Path;
use std::sync::Arc;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::{self, PemObject};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

/// The daemon is always verified: unlike the docker client without DOCKER_TLS_VERIFY.
pub fn config(folder: &Path) -> Result<Arc<ClientConfig>, String> {
    let mut trusted = RootCertStore::empty();
    for certificate in certificates(&folder.join("ca.pem"))? {
        trusted
            .add(certificate)
            .map_err(|error| format!("`{}`: {error}", folder.join("ca.pem").display()))?;
    }
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_root_certificates(trusted);
    let (certificate, key) = (folder.join("cert.pem"), folder.join("key.pem"));
    // A daemon may trust everybody, who then needs no name.
    if !certificate.exists() && !key.exists() {
        return Ok(Arc::new(config.with_no_client_auth()));
    }
    let named = certificates(&certificate)?;
    let secret = PrivateKeyDer::from_pem_file(&key).map_err(|error| unreadable(&key, &error))?;
    config
        .with_client_auth_cert(named, secret)
        .map(Arc::new)
        .map_err(|error| format!("`{}`: {error}", certificate.display()))
}

fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let found = CertificateDer::pem_file_iter(file)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| unreadable(file, &error))?;
    match found.is_empty() {
        true => Err(format!("`{}` holds no certificate", file.display())),
        false => Ok(found),
    }
}

fn unreadable(file: &Path, error: &pem::Error) -> String {
    let why = match error {
        pem::Error::Io(error) => error.to_string(),
        pem::Error::NoItemsFound => "it holds no key".to_owned(),
        other => other.to_string(),
    };
    format!(
        "`{}`, which DOCKER_CERT_PATH stands for, cannot be read: {why}",
        file.display()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_missing_or_no_certificate_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let why = config(folder.path()).unwrap_err();
        assert!(why.contains("ca.pem"), "{why}");
        std::fs::write(folder.path().join("ca.pem"), "nothing\n").unwrap();
        let why = config(folder.path()).unwrap_err();
        assert!(why.contains("holds no certificate"), "{why}");
    }
}
