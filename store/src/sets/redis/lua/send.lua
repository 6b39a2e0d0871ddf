-- Tells a pod. KEYS: its stream, its count of messages. ARGV: the message, messages at the most, how long both live (ms).
local number = redis.call('INCR', KEYS[2])
redis.call('XADD', KEYS[1], 'MAXLEN', '~', ARGV[2], '*', 'number', number, 'message', ARGV[1])
redis.call('PEXPIRE', KEYS[1], ARGV[3])
redis.call('PEXPIRE', KEYS[2], ARGV[3])
