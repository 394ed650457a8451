//! Pure: the host configuration that is visible inside, with reasons.
//!
//! Packages put the configuration of a runtime into `/etc` and link to it from the program's
//! folder. Never list a path that can hold a secret: folders that usually contain passwords or
//! tokens (settings of `maven` and `npm`, `wgetrc`, `gitconfig`, `php`, R's site files), private
//! keys, accounts, or the identity of the machine. Each row says why programs need it.

/// A path of the host's configuration, and the reason why programs need it.
pub(super) type Shown = (&'static str, &'static str);

/// Files and folders by full path. Paths that the host lacks are left out.
pub(super) const SHOWN: [Shown; 87] = [
    ("/etc/ld.so.cache", "programs find their libraries"),
    ("/etc/ld.so.conf", "linkers find libraries"),
    ("/etc/ld.so.conf.d", "linkers find libraries"),
    ("/etc/alternatives", "names of programs lead through it"),
    ("/etc/ssl/certs", "certificates of authorities"),
    ("/etc/ssl/cert.pem", "certificates of authorities"),
    ("/etc/ssl/openssl.cnf", "OpenSSL does not start without it"),
    ("/etc/pki/tls/certs", "certificates of authorities"),
    ("/etc/pki/tls/cert.pem", "certificates of authorities"),
    ("/etc/pki/tls/openssl.cnf", "OpenSSL does not start without it"),
    ("/etc/pki/ca-trust/extracted", "certificates of authorities"),
    ("/etc/pki/java", "certificates of authorities, for Java"),
    ("/etc/crypto-policies", "the configuration of OpenSSL includes it"),
    ("/etc/ca-certificates", "certificates of authorities"),
    ("/etc/ca-certificates.conf", "certificates of authorities"),
    ("/etc/localtime", "the time zone"),
    ("/etc/timezone", "the time zone"),
    ("/etc/locale.alias", "names of languages"),
    ("/etc/mime.types", "types of files"),
    ("/etc/nginx/mime.types", "types of files, which configurations include"),
    ("/etc/magic", "types of files"),
    ("/etc/magic.mime", "types of files"),
    ("/etc/protocols", "names of protocols"),
    ("/etc/services", "names of ports"),
    ("/etc/rpc", "names of protocols"),
    ("/etc/networks", "names of networks that everybody has"),
    ("/etc/ethertypes", "names of protocols"),
    ("/etc/netconfig", "names of protocols"),
    ("/etc/iproute2", "names of protocols"),
    ("/etc/host.conf", "how names are looked up"),
    ("/etc/gai.conf", "how addresses are ordered"),
    ("/etc/os-release", "the distribution"),
    ("/etc/lsb-release", "the distribution"),
    ("/etc/debian_version", "the distribution"),
    ("/etc/redhat-release", "the distribution"),
    ("/etc/fedora-release", "the distribution"),
    ("/etc/system-release", "the distribution"),
    ("/etc/arch-release", "the distribution"),
    ("/etc/alpine-release", "the distribution"),
    ("/etc/dpkg/origins", "builders of packages ask for the distribution"),
    ("/etc/terminfo", "what terminals can do"),
    ("/etc/inputrc", "keys of line editors"),
    ("/etc/vim", "the editor's defaults"),
    ("/etc/nanorc", "the editor's defaults"),
    ("/etc/emacs", "the editor's defaults"),
    ("/etc/fonts", "fontconfig finds no font without it"),
    ("/var/cache/fontconfig", "fonts are not read anew by each program"),
    ("/etc/X11/app-defaults", "looks of programs"),
    ("/etc/X11/fonts", "names of fonts"),
    ("/etc/X11/xkb", "keyboards of a display in memory"),
    ("/etc/gtk-2.0", "modules of a library"),
    ("/etc/gtk-3.0", "modules of a library"),
    ("/etc/glvnd", "drivers of graphics in memory"),
    ("/etc/vulkan", "drivers of graphics in memory"),
    ("/etc/OpenCL", "drivers of computation"),
    ("/etc/maven/m2.conf", "Maven does not start without it; its settings.xml can hold passwords"),
    ("/etc/maven/logging", "Maven does not start without it"),
    ("/etc/ant", "Ant's libraries"),
    ("/etc/ant.d", "Ant's libraries"),
    ("/etc/perl", "modules of Perl"),
    ("/etc/mono", "Mono does not start without it"),
    ("/etc/dotnet", "where .NET is"),
    ("/etc/fpc.cfg", "the compiler finds its units"),
    ("/etc/gdb", "the debugger's defaults"),
    ("/etc/R/Renviron", "R does not start without it"),
    ("/etc/R/ldpaths", "R does not start without it"),
    ("/etc/R/Makeconf", "R builds packages"),
    ("/etc/R/repositories", "R lists packages"),
    ("/etc/matplotlibrc", "defaults of drawings"),
    ("/etc/openmpi", "programs of many processes do not start without it"),
    ("/etc/chromium.d/default-flags", "the browser's start reads it, and a folder beside has keys"),
    ("/etc/chromium.d/extensions", "the browser's start reads it"),
    ("/etc/libreoffice", "LibreOffice does not start without it"),
    ("/etc/ghostscript", "fonts of documents"),
    ("/var/lib/ghostscript", "fonts of documents"),
    ("/etc/texmf", "TeX finds its files"),
    ("/var/lib/texmf", "TeX's formats, made at its installation"),
    ("/etc/groff", "manuals are formatted"),
    ("/etc/manpath.config", "manuals are found"),
    ("/etc/xml", "catalogues of document types"),
    ("/etc/sgml", "catalogues of document types"),
    ("/var/lib/xml-core", "catalogues of document types"),
    ("/var/lib/sgml-base", "catalogues of document types"),
    ("/var/lib/ghc", "Haskell's list of packages"),
    ("/var/lib/gems", "Ruby's packages"),
    ("/etc/postgresql-common/createcluster.conf", "the programs of PostgreSQL are led by it"),
    ("/etc/postgresql-common/supported_versions", "the programs of PostgreSQL are led by it"),
];

/// Folders whose names end in a version: the parent, the prefix of the name, and the reason.
pub(super) const FAMILIES: [(&str, &str, &str); 4] = [
    ("/etc", "java", "Java does not start without it"),
    ("/etc", "python", "Python's start looks there"),
    ("/etc", "ImageMagick", "ImageMagick does nothing without it"),
    ("/etc", "octave", "Octave's defaults"),
];

#[cfg(test)]
mod tests {
    use super::*;

    /// Folders and files that usually contain secrets, accounts or the machine's identity.
    const NEVER: [&str; 24] = [
        "/etc/shadow",
        "/etc/gshadow",
        "/etc/ssh",
        "/etc/ssl/private",
        "/etc/pki/tls/private",
        "/etc/machine-id",
        "/etc/maven/settings.xml",
        "/etc/npmrc",
        "/etc/pip.conf",
        "/etc/wgetrc",
        "/etc/gitconfig",
        "/etc/environment",
        "/etc/php",
        "/etc/R/Renviron.site",
        "/etc/mysql",
        "/etc/redis",
        "/etc/apt",
        "/etc/sudoers",
        "/etc/krb5.keytab",
        "/etc/NetworkManager",
        "/etc/wireguard",
        "/etc/docker",
        "/etc/kubernetes",
        "/etc/conway",
    ];

    #[test]
    fn nothing_that_can_hold_a_secret_is_shown() {
        for (path, why) in SHOWN {
            assert!(!why.is_empty(), "{path}");
            for never in NEVER {
                let within = |a: &str, b: &str| std::path::Path::new(a).starts_with(b);
                assert!(!within(never, path) && !within(path, never), "{path} shows {never}");
            }
        }
        for (folder, prefix, _) in FAMILIES {
            let begins = format!("{folder}/{prefix}");
            assert!(!NEVER.iter().any(|never| never.starts_with(&begins)), "{begins}");
        }
    }
}
