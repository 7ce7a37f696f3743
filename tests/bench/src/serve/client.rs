//! A client of its own: one connection that stays, nothing but bytes. It shares
//! the processors with the server that it measures, so it does no more than it
//! must.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// A connection that stays.
pub struct Client {
    stream: BufReader<TcpStream>,
    head: String,
    line: String,
    sent: Vec<u8>,
}

/// An answer: status and body.
pub type Answer = (u16, String);

impl Client {
    /// Connects to `address` with a token.
    pub fn new(address: &str, token: &str) -> io::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(Duration::from_mins(1)))?;
        let head = format!(
            "host: {address}\r\nauthorization: Bearer {token}\r\ncontent-type: application/json\r\n"
        );
        Ok(Self {
            stream: BufReader::with_capacity(16 << 10, stream),
            head,
            line: String::new(),
            sent: vec![],
        })
    }

    /// One request and its answer, which has to say its length.
    pub fn ask(&mut self, method: &str, path: &str, body: &str) -> io::Result<Answer> {
        self.sent.clear();
        write!(
            self.sent,
            "{method} {path} HTTP/1.1\r\n{}content-length: {}\r\n\r\n{body}",
            self.head,
            body.len()
        )?;
        self.stream.get_mut().write_all(&self.sent)?;
        let status = self.line()?.split(' ').nth(1).and_then(|word| word.parse().ok());
        let status = status.ok_or_else(|| io::Error::other("no status"))?;
        let mut length = 0;
        loop {
            let line = self.line()?;
            if line.is_empty() {
                break;
            }
            if let Some((name, value)) = line.split_once(':')
                && name.eq_ignore_ascii_case("content-length")
            {
                length = value.trim().parse().map_err(io::Error::other)?;
            }
        }
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body)?;
        Ok((status, String::from_utf8(body).map_err(io::Error::other)?))
    }

    fn line(&mut self) -> io::Result<&str> {
        self.line.clear();
        if self.stream.read_line(&mut self.line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(self.line.trim_end())
    }

    /// An answer of one status and how many milliseconds it took.
    pub fn timed(&mut self, method: &str, path: &str, body: &str, status: u16) -> (f64, String) {
        let begin = Instant::now();
        let (got, text) = self.ask(method, path, body).expect("an answer");
        assert_eq!(got, status, "{method} {path}: {text}");
        (begin.elapsed().as_secs_f64() * 1e3, text)
    }
}

/// Times in milliseconds.
#[derive(Default)]
pub struct Times(pub Vec<f64>);

impl Times {
    /// The time that this part of them does not exceed.
    pub fn at(&mut self, part: f64) -> f64 {
        self.0.sort_by(f64::total_cmp);
        let last = self.0.len().saturating_sub(1);
        self.0.get(((self.0.len() as f64 * part) as usize).min(last)).copied().unwrap_or(0.0)
    }
}
