//! A few words of Cassandra's own protocol, past the product and its driver: enough to drop things and to count rows.

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

/// Version 4 of the protocol.
const VERSION: u8 = 4;
const STARTUP: u8 = 1;
const READY: u8 = 2;
const QUERY: u8 = 7;
const RESULT: u8 = 8;
const CONSISTENCY_ONE: u16 = 1;

/// A connection to the Cassandra of this run.
pub struct Cql(TcpStream);

impl Cql {
    /// Connects, past every proxy.
    pub async fn connect() -> Self {
        let url = std::env::var("TEST_CASSANDRA").expect("Cassandra");
        let address = url.trim_start_matches("scylla://").split(',').next().unwrap_or_default();
        let mut cql = Self(TcpStream::connect(address).await.expect("Cassandra"));
        let mut options = 1_u16.to_be_bytes().to_vec();
        for text in ["CQL_VERSION", "3.0.0"] {
            options.extend(u16::try_from(text.len()).expect("a short text").to_be_bytes());
            options.extend(text.as_bytes());
        }
        cql.ask(STARTUP, &options, READY).await;
        cql
    }

    /// Runs a statement.
    pub async fn run(&mut self, statement: &str) -> Vec<u8> {
        let mut body = u32::try_from(statement.len()).expect("a short statement").to_be_bytes().to_vec();
        body.extend(statement.as_bytes());
        body.extend(CONSISTENCY_ONE.to_be_bytes());
        body.push(0);
        self.ask(QUERY, &body, RESULT).await
    }

    /// How many rows a table has.
    pub async fn count(&mut self, table: &str) -> usize {
        let answer = self.run(&format!("SELECT count(*) FROM {table}")).await;
        // The answer's only value is the last thing in it.
        let last = answer.last_chunk().expect("a number");
        usize::try_from(u64::from_be_bytes(*last)).expect("a count")
    }

    async fn ask(&mut self, opcode: u8, body: &[u8], expected: u8) -> Vec<u8> {
        let mut frame = vec![VERSION, 0, 0, 0, opcode];
        frame.extend(u32::try_from(body.len()).expect("a short frame").to_be_bytes());
        frame.extend(body);
        self.0.write_all(&frame).await.expect("a question");
        let mut header = [0; 9];
        self.0.read_exact(&mut header).await.expect("an answer");
        let length = u32::from_be_bytes([header[5], header[6], header[7], header[8]]);
        let mut answer = vec![0; length as usize];
        self.0.read_exact(&mut answer).await.expect("an answer");
        assert_eq!(header[4], expected, "{}", String::from_utf8_lossy(&answer));
        answer
    }
}
