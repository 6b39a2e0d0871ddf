-- Takes an entry out of homes. KEYS: the homes. ARGV: the member. A home keeps its sentinel, and so stays one.
for _, home in ipairs(KEYS) do
  redis.call('ZREM', home, ARGV[1])
end
